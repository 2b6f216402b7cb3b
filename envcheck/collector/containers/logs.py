"""What engines and NVIDIA's tools have written to the system's logs where a container got no GPU."""

import os
import re

from ..files import open_regular

LOGS = ("/var/log/syslog", "/var/log/messages", "/var/log/audit/audit.log")
FOLDERS = (
    ("/var/log/containers", "", "nvidia-device-plugin"),
    ("/var/snap/lxd/common/lxd/logs", "forkstart.log", ""),
    ("/var/log/lxd", "forkstart.log", ""),
)
_TAIL = 1 << 18  # bytes
_MOST = 20
_TEXT = 600  # characters
_WORDS = re.compile(
    r"nvidia-container-cli(?:\.real)?: |unresolvable CDI devices|could not select device driver"
    r"|Failed to initialize NVML|avc:  denied .{0,120}\bname=\"nvidia"
)


def errors(context):
    """The last lines of their kinds: {"path": the log, "text": from the first telling word on}."""
    found = {}
    for path in _paths(context):
        for line in _tail(context, path).splitlines():
            match = _WORDS.search(line)
            if match:
                found[path, match.group()[:40]] = line[match.start() :][:_TEXT]
    return [{"path": path, "text": text} for (path, _words), text in sorted(found.items())][:_MOST]


def _paths(context):
    for path in LOGS:
        yield path
    for folder, name, start in FOLDERS:
        for entry in [one for one in context.names(folder) if one.startswith(start)][:_MOST]:
            yield "/".join([folder, entry] + [name] * bool(name))


def _tail(context, path):
    try:
        with open_regular(context.path(path)) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _TAIL))
            return file.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        return ""
