"""Asks interpreters what they are, side by side: each is started once, with a deadline of its own.

python-discovery asks one after the other: one that hangs costs 30 s and is left running, and what a chatty
interpreter prints reaches envcheck's own output.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from .. import processes

# Seconds. A Python starts in well under one, also over a network; a shim that hangs costs no more.
DEADLINE = 10.0
AT_ONCE = 8

_BEGIN, _END = b"@envcheck{@", b"@}envcheck@"


class InterpreterAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What an interpreter says of itself; see probe_script.py."""

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


class NoAnswer(msgspec.Struct, frozen=True):
    """Why there is no answer, as the end of a sentence that begins with the interpreter's path."""

    why: str


def ask(paths: Iterable[str]) -> dict[str, InterpreterAnswer | NoAnswer]:
    """Start each of these interpreters once and ask it; from the main thread."""
    script = Path(__file__).with_name("probe_script.py").read_text(encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    wanted = iter(dict.fromkeys(paths))
    answers: dict[str, InterpreterAnswer | NoAnswer] = {}
    while some := list(islice(wanted, AT_ONCE)):
        results = processes.run_side_by_side(
            [[path, "-I", "-B", "-c", script] for path in some],
            deadline=DEADLINE,
            env=env,
            cwd=Path("/"),  # what a version manager reads in the working directory has no say
        )
        answers |= zip(some, map(_read, results), strict=True)
    return answers


def _read(result: Any) -> InterpreterAnswer | NoAnswer:
    """The answer in what the process printed."""
    text: bytes = result.stdout
    begin, end = text.find(_BEGIN), text.rfind(_END)
    words = result.words_of_python()
    if result.ok and not 0 <= begin < end:
        return NoAnswer("is not a Python interpreter: it does not answer as one does")
    if not result.ok:
        if result.outcome == "exited" and result.code > 0 and not words:
            return NoAnswer("is not a Python interpreter")
        return NoAnswer(result.describe() + (f": {words}" if words else ""))
    try:
        return msgspec.json.decode(text[begin + len(_BEGIN) : end], type=InterpreterAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return NoAnswer(f"gave an answer that cannot be read: {error}")
