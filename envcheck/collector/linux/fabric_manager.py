"""The fabric manager's messages since it was last started, from its own log."""

import os
import re
import time

from ..facts import from_error, is_unavailable
from ..files import open_regular
from .boot import boot_time
from .kernel_log import JOURNAL_DEADLINE, JOURNALCTL

LOG = "/var/log/fabricmanager.log"
UNIT = "nvidia-fabricmanager"
JOURNAL = (JOURNALCTL, "-u", UNIT, "-b", "-q", "--no-pager", "-o", "cat", "-n", "60")
LIMIT = 1 << 20  # bytes, the last ones
EVENTS = 50
TEXT_LIMIT = 300  # characters

# "[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch non-fatal error 12028 …"
LINE = re.compile(
    r"(?:\[(?P<when>\w{3} [ \d]\d \d{4} [\d:]{8})\] )?\[(?P<level>[A-Z]{4,8})\] "
    r"(?:\[tid \d{1,10}\] )?(?P<text>.+)"
)
LEVELS = ("ERROR", "CRITICAL", "ALERT", "FATAL")
SAID = re.compile(r"\b(?:fail(?:ed|ure)|error|abort(?:ed|ing)|match)\b", re.I)
SYSTEMD = re.compile(r"\.service: |Failed to start |failed! Exit code")
START = "Fabric Manager Log initializing"


def fabric_manager_log(context, services):
    """(events, source): oldest first, each different one once; or the reason why there are none.

    One that does not start may say why on stderr alone, which is in the journal.
    """
    events = _read(context)
    manager = next((service for service in services if service["name"] == UNIT), {})
    stopped = manager.get("installed") is True and manager.get("running") is False
    if stopped and (is_unavailable(events) or not events):
        result = context.run([context.path(JOURNAL[0])] + list(JOURNAL[1:]), JOURNAL_DEADLINE)
        found = parse_journal(result.stdout.decode("utf-8", "replace")) if result.ok else []
        if found:
            return found, "journalctl -b -u " + UNIT
    return events, LOG


def _read(context):
    try:
        with open_regular(context.path(LOG)) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - LIMIT))
            data = file.read(LIMIT)
    except OSError as error:
        return from_error(error)
    return parse(data.decode("utf-8", "replace"), boot_time(context))


def parse(text, booted=None):
    """The errors since the last start; what stands there from before the boot (seconds) is left out."""
    found = []
    for line in text.split("\n"):
        match = LINE.match(line)
        if START in line:
            found = []
        elif match and match.group("level") in LEVELS:
            when = _seconds(match.group("when"))
            if booted is None or when is None or when >= booted:
                found.append(match.group("text"))
    return _folded(found)


def parse_journal(text):
    """Its messages on stderr, without systemd's own on the service."""
    lines = [line for line in text.split("\n") if SAID.search(line) and not SYSTEMD.search(line)]
    return _folded(lines)


def _folded(lines):
    events = {}
    for line in lines:
        words = " ".join(line.split())[:TEXT_LIMIT]
        key = re.sub(r"\d{5,}", "#", words)
        count = events.pop(key, {"count": 0})["count"]
        events[key] = {"text": words, "count": count + 1}
    return list(events.values())[-EVENTS:]


def _seconds(when):
    """The log's local time as seconds since the epoch, or None."""
    try:
        return time.mktime(time.strptime(when, "%b %d %Y %H:%M:%S")) if when else None
    except (ValueError, OverflowError):
        return None
