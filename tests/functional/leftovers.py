"""What an engine leaves behind in a folder: processes and mounts."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from processes import everything, ran


def processes_of(folder: Path) -> list[int]:
    """Processes whose command names something in the folder: conmon does."""
    place = f"{folder}/".encode()
    others = [one for one in everything() if one.pid != os.getpid()]
    return [o.pid for o in others if any(w.startswith(place) for w in o.command.split(b"\0"))]


def kill_those_of(folder: Path) -> None:
    for pid in processes_of(folder):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def mounts_below(folder: Path) -> list[str]:
    """Mount points in the folder, the innermost first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return [p for p in reversed(points) if Path(p).is_relative_to(folder)]


def unmount_below(folder: Path) -> None:
    for point in mounts_below(folder):
        ran(["umount", "-l", point])
