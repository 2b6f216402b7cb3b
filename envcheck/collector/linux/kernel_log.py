"""What the kernel log says about GPUs since the machine was booted, from whichever place may be read."""

import errno
import os
import time

from ..facts import is_unavailable, unavailable
from ..files import names, open_regular
from .boot import boot_time
from .gpu_events import fold, parse_kmsg, parse_text

KMSG = "/dev/kmsg"
KMSG_BUFFER = 64 * 1024  # bytes; a record is at most a tenth of it, and a smaller buffer is refused
KMSG_SECONDS = 1.5
KMSG_BATCH = 1 << 20  # bytes of records that are taken apart together
FILES = ("/var/log/kern.log", "/var/log/messages", "/var/log/dmesg")
FILE_LIMIT = 8 << 20  # bytes, the last ones
JOURNALS = ("/var/log/journal", "/run/log/journal")
JOURNALCTL = "/usr/bin/journalctl"
JOURNAL_LINES = 40000
JOURNAL_DEADLINE = 2


def read_log(context):
    """(events, source): the events oldest first, or the reason why no kernel log could be read."""
    first = None
    for read in (_kmsg, _files, _journal):
        events, source = read(context)
        if not is_unavailable(events):
            return fold(events), source
        if first is None or first["unavailable"] == "absent":
            first = events
    return first, "%s, /var/log and the journal" % KMSG


def _kmsg(context):
    """The kernel's own ring buffer, record by record, without waiting for new ones."""
    try:
        handle = os.open(context.path(KMSG), os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return _refused(error, KMSG), KMSG
    events, oldest, pending = [], None, b""
    deadline = time.monotonic() + KMSG_SECONDS
    try:
        while time.monotonic() < deadline:
            try:
                data = os.read(handle, KMSG_BUFFER)
            except OSError as error:
                if error.errno == errno.EPIPE:  # overwritten while it was being read
                    continue
                if error.errno != errno.EAGAIN:
                    return _refused(error, KMSG), KMSG
                break
            if not data:
                break
            pending += data
            if len(pending) >= KMSG_BATCH:
                whole = pending.rfind(b"\n") + 1
                begins = parse_kmsg(pending[:whole], events)
                oldest = begins if oldest is None else oldest
                pending = pending[whole:]
    finally:
        os.close(handle)
    begins = parse_kmsg(pending, events)
    oldest = begins if oldest is None else oldest
    reach = "" if oldest is None else ", from %.1f s after boot" % oldest
    return events, KMSG + reach


def _files(context):
    """The file that a syslog daemon keeps; what stands in it from before the last boot is left out."""
    booted = boot_time(context)
    refused = None
    for path in FILES:
        try:
            with open_regular(context.path(path)) as file:
                status = os.fstat(file.fileno())
                if booted is not None and status.st_mtime < booted:
                    continue  # nobody has written to it since the boot
                file.seek(max(0, status.st_size - FILE_LIMIT))
                data = file.read(FILE_LIMIT)
        except OSError as error:
            if error.errno != errno.ENOENT and refused is None:
                refused = _refused(error, path)
            continue
        return parse_text(data.decode("utf-8", "replace")), path
    return refused or unavailable("absent", "no kernel log in /var/log"), "/var/log"


def _journal(context):
    """The journal's copy, for those who may read the system's journal."""
    folders = [context.path(folder) for folder in JOURNALS]
    if not any(os.path.isdir(folder) for folder in folders) or not os.path.exists(
        context.path(JOURNALCTL)
    ):
        return unavailable("absent", "no journal"), JOURNALCTL
    if not any(_readable(folder) for folder in folders):
        return unavailable("no-permission", "the system journal"), JOURNALCTL
    result = context.run(
        [
            context.path(JOURNALCTL),
            "-k",
            "-b",
            "-q",
            "--no-pager",
            "-o",
            "short-monotonic",
            "-n",
            str(JOURNAL_LINES),
        ],
        JOURNAL_DEADLINE,
    )
    if not result.ok:
        reason = "timeout" if result.outcome == "timeout" else "error"
        return unavailable(reason, "journalctl " + result.describe()), JOURNALCTL
    return parse_text(result.stdout.decode("utf-8", "replace")), "journalctl -k -b"


def _readable(folder):
    """Whether a journal folder has a system journal that this user may open."""
    journals = [os.path.join(folder, machine, "system.journal") for machine in names(folder)]
    return any(os.access(journal, os.R_OK) for journal in journals)


def _refused(error, path):
    if error.errno in (errno.EPERM, errno.EACCES):
        return unavailable("no-permission", "%s: %s" % (path, error.strerror))
    if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        return unavailable("absent", path)
    return unavailable("error", "%s: %s" % (path, error.strerror or error))
