"""Lets something happen at one chosen change of a file: a process that dies, a disk that is full."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

CHANGES = {"os.rename", "os.symlink", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
NEVER = 77  # the exit code of a run that had fewer changes


def full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def changing(number: int, happen: Any, work: Any, again: bool = False) -> None:
    """Do the work in this process, and let something happen at its change with that number.

    Changes are where a name comes, goes or changes, and where a file is opened for writing, in the
    directory that holds HOME. again: at every later one, too.
    """
    left = number
    here = str(Path(os.environ["HOME"]).parent)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
        if event not in CHANGES and not writes:
            return
        if event in ("os.rename", "os.mkdir"):  # in an open directory, too
            arguments = (*arguments, *_directories(arguments[2:]))
        if not any(str(a).startswith(here) for a in arguments if isinstance(a, (str, os.PathLike))):
            return
        if happen is full and event in ("os.remove", "os.rmdir"):
            return  # takes no room
        left -= 1
        if left == -1 or (again and left < 0):
            happen()

    sys.addaudithook(hook)
    work()
    if left >= 0:
        raise SystemExit(NEVER)


def _directories(handles: tuple[Any, ...]) -> list[str]:
    """What descriptors among the arguments lead to; -1 is none."""
    return [
        os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 - not of a Path
        for handle in handles
        if isinstance(handle, int) and Path(f"/proc/self/fd/{handle}").exists()
    ]
