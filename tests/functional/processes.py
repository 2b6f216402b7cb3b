"""What runs on this machine, for tests of what is left behind; a test's processes are known by its TMPDIR."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

# Seconds after which a test gives up. Far beyond what the busiest machine takes: a test waits for a
# state, and this only ends one whose state never comes.
PATIENCE = 900.0


def ran(argv: Sequence[str | Path], **options: Any) -> Any:
    """A program's CompletedProcess with both streams, as bytes; options: those of subprocess.run."""
    usual = {"capture_output": True, "timeout": PATIENCE, "check": False}
    return subprocess.run(argv, **(usual | options))


def begun(argv: Sequence[str | Path], **options: Any) -> Any:
    """The Popen of a program with both of its streams as pipes; options: those of Popen."""
    usual = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(argv, **(usual | options))


def lines(child: subprocess.Popen[bytes], stream: IO[bytes] | None) -> Iterator[bytes]:
    """The lines of a child's stream, as they come; the child is killed where it takes too long."""
    assert stream is not None
    limit = threading.Timer(PATIENCE, child.kill)
    limit.start()
    try:
        yield from iter(stream.readline, b"")
    finally:
        limit.cancel()


def stretched(seconds: float) -> float:
    """A deadline that something is to run into, longer by as much as this machine is slower than idle.

    What has to be ready before the deadline (an interpreter, a fork) then still is.
    """
    slowest = 0.0
    for _ in range(3):
        began = time.monotonic()
        subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
        slowest = max(slowest, time.monotonic() - began)
    return seconds * max(1.0, slowest / 0.02)


def timeless(reason: str) -> str:
    """A reason without its seconds, which differ where the machine is busy."""
    return re.sub(r"within [\d.]+ s", "within N s", reason)


class Running(NamedTuple):
    """A process of this machine; its command's words end with zeros."""

    pid: int
    parent: int
    state: str  # a letter, as ps has it
    command: bytes


def everything() -> Iterator[Running]:
    """All processes, but for those that end meanwhile."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes()
            yield Running(int(entry.name), int(parent), state, command)


def running(folder: Path) -> list[tuple[int, int, bytes]]:
    """(pid, parent, command) of the processes whose TMPDIR is ``folder``/tmp."""
    found = []
    for one in everything():
        with suppress(OSError):
            if f"TMPDIR={folder}/tmp".encode() in Path(f"/proc/{one.pid}/environ").read_bytes():
                found.append((one.pid, one.parent, one.command))
    return found


def running_commands(text: str) -> list[bytes]:
    """The command lines that contain a text."""
    return [one.command for one in everything() if text.encode() in one.command]


def wait_for(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Wait for a state: whether the condition came true within that time."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.02)
    return False
