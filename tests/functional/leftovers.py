"""What an engine leaves behind in a folder: processes and mounts."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from processes import ran


def processes_of(folder: Path) -> list[int]:
    """Processes whose command names something in the folder: conmon does."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (entry / "cmdline").read_bytes().split(b"\0")
            if any(word.startswith(f"{folder}/".encode()) for word in command):
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


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
