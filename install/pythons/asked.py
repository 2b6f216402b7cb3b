"""Asks interpreters what they are, side by side: each is started once, with a deadline of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from .. import processes

# Seconds. A Python starts in well under one, also over a network; a shim that hangs costs no more.
DEADLINE = 10.0
AT_ONCE = 8

_BEGIN, _END = b"@envcheck{@", b"@}envcheck@"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What an interpreter says of itself; see asking.py."""

    version: str
    implementation: str  # "CPython", "PyPy"
    machine: str  # the kernel's: "x86_64"
    bits: int
    abi: str  # "cpython-38-x86_64-linux-gnu"; "cpython-36m-…", "cpython-313t-…"
    build: str  # "x86_64-pc-linux-gnu", "x86_64-pc-linux-musl"
    debug: bool
    free_threaded: bool
    executable: str
    base_executable: str
    prefix: str
    base_prefix: str
    libc: str  # "glibc 2.36"; "": not glibc
    modules: list[str]  # of venv and ensurepip, those that are there

    @property
    def is_environment(self) -> bool:
        return self.prefix != self.base_prefix


class Silence(msgspec.Struct, frozen=True):
    """Why there is no answer, as the end of a sentence that begins with the interpreter's path."""

    why: str


def ask(paths: Iterable[str]) -> dict[str, Answer | Silence]:
    """Start each of these interpreters once and ask it; from the main thread."""
    wanted = list(dict.fromkeys(paths))
    if not wanted:
        return {}
    script = Path(__file__).with_name("asking.py").read_text(encoding="utf-8")
    stop = threading.Event()
    with ThreadPoolExecutor(min(AT_ONCE, len(wanted))) as threads:
        try:
            # A thread that runs a program waits for its end, and so never takes it along.
            answers = list(threads.map(lambda path: _ask_one(path, script, stop), wanted))
        except BaseException:
            stop.set()
            threads.shutdown(cancel_futures=True)
            raise
    return dict(zip(wanted, answers, strict=True))


class _Stopped(Exception):
    pass


def _ask_one(path: str, script: str, stop: threading.Event) -> Answer | Silence:
    def look(_lines: Sequence[str]) -> None:
        if stop.is_set():
            raise _Stopped

    result = processes.run(
        [path, "-I", "-B", "-c", script],
        deadline=DEADLINE,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        cwd=Path("/"),  # what a version manager reads in the working directory has no say
        tick=look,
    )
    return _read(result)


def _read(result: Any) -> Answer | Silence:
    """The answer in what the process printed."""
    text: bytes = result.stdout
    begin, end = text.find(_BEGIN), text.rfind(_END)
    words = result.words_of_python()
    if result.ok and not 0 <= begin < end:
        return Silence("is not a Python interpreter: it does not answer as one does")
    if not result.ok:
        if result.outcome == "exited" and result.code > 0 and not words:
            return Silence("is not a Python interpreter")
        return Silence(result.describe() + (f": {words}" if words else ""))
    try:
        return msgspec.json.decode(text[begin + len(_BEGIN) : end], type=Answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Silence(f"gave an answer that cannot be read: {error}")
