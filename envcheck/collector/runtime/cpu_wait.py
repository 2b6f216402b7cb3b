"""How long processes were ready to run and had no CPU: what a busy machine takes from them."""

import os

from .. import files


def of_group(group):
    """Seconds, of the main threads of all processes in this group; 0 where the kernel does not say."""
    return sum(of_process(pid) for pid in _members(group))


def of_process(pid):
    """Seconds of its main thread; /proc/PID/schedstat has them in nanoseconds."""
    try:
        return int(files.read("/proc/%d/schedstat" % pid, 100).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _members(group):
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return [pid for pid in numbers if _group_of(pid) == group]


def _group_of(pid):
    try:
        return os.getpgid(pid)
    except OSError:
        return None
