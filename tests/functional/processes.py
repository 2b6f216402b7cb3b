"""What runs on this machine, for tests of what is left behind; a test's processes are known by its TMPDIR."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def running(folder: Path) -> list[tuple[int, int, bytes]]:
    """(pid, parent, command) of the processes whose TMPDIR is ``folder``/tmp."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if f"TMPDIR={folder}/tmp".encode() in (entry / "environ").read_bytes():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes()
                found.append((int(entry.name), int(fields[1]), command))
        except (OSError, ValueError):
            continue
    return found


def running_commands(text: str) -> list[bytes]:
    """The command lines that contain a text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in command:
            found.append(command)
    return found


def wait_for(condition: Callable[[], object], seconds: float = 10.0) -> bool:
    """Whether the condition came true within that time."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.02)
    return False
