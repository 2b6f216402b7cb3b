"""Starts the installers' programs through the one module that starts processes.

What it starts dies with envcheck: a uv that went on after `kill -9` would write into an environment that
the next envcheck is about to remove.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..collector.runtime import process

GRACE = 5.0  # seconds between SIGTERM and SIGKILL

# Asks the kernel for the parent's death signal, then becomes the program. A `preexec_fn` would do the same
# between fork and exec, where a process with threads must not run Python.
_TIE = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(1, int(sys.argv[2]), 0, 0, 0)\n"
    "if os.getppid() != int(sys.argv[1]): sys.exit(0)\n"
    "try: os.execv(sys.argv[3], sys.argv[3:])\n"
    "except OSError as error: sys.exit('%s: %s' % (sys.argv[3], error.strerror))\n"
)


def resident(pid: int) -> int:
    """Bytes of memory that a process holds; 0 where that cannot be read."""
    return int(process.resident(pid))


def written(pid: int) -> int:
    """Bytes that a process has written in all; growing with the time where that cannot be read."""
    return int(process.written(pid))


def run(
    argv: Sequence[str | Path],
    *,
    deadline: float,
    env: Mapping[str, str],
    cwd: Path | None = None,
    tick: Callable[[list[str]], None] | None = None,
    orphaned: int = signal.SIGKILL,
    both: bool = False,
    watch: Callable[[int], None] | None = None,
) -> Any:
    """Run one program (an absolute path first) to its end: a ``process.Result``.

    deadline: seconds. env: its whole environment. tick: called between looks, with the whole lines that it
    has written to stderr since the last call; what it raises ends the program. both: of stdout, too.
    orphaned: the signal that it gets when envcheck dies; SIGTERM for one that must unlock what it holds.
    watch: called between looks with its process id; what it raises ends the program, too.
    """
    child = _child(argv, deadline, env, cwd, orphaned)

    def look() -> None:
        if watch is not None and child.pid is not None:
            watch(child.pid)
        if tick is not None:
            lines = child.new_stdout().decode("utf-8", "replace").splitlines() if both else []
            tick(lines + child.new_stderr())

    process.run_all([child], look)
    return child.result


def run_on_terminal(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    tick: Callable[[], None],
    grace: float = GRACE,
) -> Any:
    """Run one program that may ask for passwords: it has our terminal and our standard input.

    tick: called between looks; what it raises, as Ctrl-C, ends the program and all that it started. Of
    what it leaves running when it ends, connections that ssh shares go on, as they are meant to.
    """
    spared = set(process.orphans.children())
    process.orphans.adopt()
    tied = [sys.executable, "-I", "-S", "-c", _TIE, os.getpid(), int(signal.SIGTERM), *argv]
    child = process.Child(
        tied, float("inf"), env=dict(env), grace=grace, own_session=False, stdin=process.INHERIT
    )
    try:
        process.run_all([child], tick)
    except BaseException:
        process.orphans.sweep(spare=spared)
        raise
    if child.result.outcome == "exited" and child.result.code >= 0:
        remaining = process.orphans.children()
        spared.update(pid for pid in remaining if process.orphans.is_shared_ssh(pid))
    process.orphans.sweep(spare=spared)
    return child.result


def run_many(
    commands: Iterable[Sequence[str | Path]],
    *,
    at_once: int,
    env: Mapping[str, str],
    stdin: Path,
    launch: float,
    mark: bytes,
    deadline: float,
    limit: int,
    ended: Callable[[int, Any], None],
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Run many programs, at most so many ``at_once``, each with this file as its standard input.

    launch: seconds that each has until a line of its output is ``mark``; from then on it has ``deadline``.
    limit: bytes of its output. ended: called with a program's number and its ``process.Result`` as soon as it
    has ended; what it raises, as Ctrl-C, ends them all. SIGTERM ends them, also where envcheck dies. tick:
    called between looks; what it raises ends them, too.
    """
    waiting = enumerate(commands)
    running: dict[int, Any] = {}
    reached: set[int] = set()
    try:
        while True:
            while len(running) < at_once and (one := next(waiting, None)) is not None:
                number, argv = one
                running[number] = _child(argv, launch, env, None, signal.SIGTERM, str(stdin), limit)
            for number, child in list(running.items()):
                if number not in reached and mark in child.new_stdout().splitlines():
                    reached.add(number)
                    child.allow(time.monotonic() - child.started + deadline)
                if child.poll() is not None:
                    del running[number]
                    ended(number, child.result)
            if not running:
                return
            tick()
            time.sleep(0.02)
    except BaseException:
        process.stop_all(list(running.values()))
        raise


def run_side_by_side(
    commands: Sequence[Sequence[str | Path]], *, deadline: float, env: Mapping[str, str], cwd: Path
) -> list[Any]:
    """Run several programs at once, each with the deadline (seconds): their results, in order."""
    children = [_child(argv, deadline, env, cwd, signal.SIGKILL) for argv in commands]
    process.run_all(children)
    return [child.result for child in children]


def start(argv: Sequence[str | Path], *, given: Path, deadline: float, limit: int) -> Any:
    """Start a program with a file as its standard input: a ``process.Child``, which the caller polls.

    limit: bytes that it may write.
    """
    return _child(argv, deadline, os.environ, None, signal.SIGKILL, str(given), limit, grace=0.0)


def stop_all(children: Sequence[Any]) -> None:
    """End them, and wait until they are gone."""
    process.stop_all(children)


def _child(
    argv: Sequence[str | Path],
    deadline: float,
    env: Mapping[str, str],
    cwd: Path | None,
    orphaned: int,
    stdin: str | None = None,
    limit: int = process.OUTPUT_LIMIT,
    grace: float = GRACE,
) -> Any:
    tied = [sys.executable, "-I", "-S", "-c", _TIE, os.getpid(), int(orphaned), *argv]
    where = None if cwd is None else str(cwd)
    return process.Child(
        tied, deadline, env=dict(env), cwd=where, grace=grace, stdin=stdin, limit=limit
    )
