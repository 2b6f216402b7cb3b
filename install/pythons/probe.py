"""Asks interpreters what they are, side by side: each is started once, with a deadline of its own.

python-discovery asks one after the other: one that hangs costs 30 s and is left running, and what a chatty
interpreter prints reaches envcheck's own output.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ... import json_text
from .. import processes
from .interpreter import Interpreter, tags

# Seconds. A Python starts in well under one, also over a network; a shim that hangs costs no more.
DEADLINE = 10.0
AT_ONCE = 8

# Of an answer from another machine: words that tags are made of, and versions that are compared.
_Version = Annotated[
    str, Meta(pattern=r"\A[23]\.[0-9]{1,2}(\.[0-9]{1,3})?((a|b|rc)[0-9]{1,3})?\+?\Z")
]
_Libc = Annotated[
    str, Meta(pattern=r"\A[A-Za-z]{0,10}( [0-9]{1,2}\.[0-9]{1,2}([.-][0-9A-Za-z.-]{0,20})?)?\Z")
]
_Word = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_.+-]{0,80}\Z")]

_BEGIN, _END = b"@envcheck{@", b"@}envcheck@"


class InterpreterAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What an interpreter says of itself; see probe_script.py."""

    version: _Version
    implementation: _Word  # "CPython", "PyPy"
    architecture: _Word
    abi: _Word  # "cpython-38-x86_64-linux-gnu"; "cpython-36m-…", "cpython-313t-…"
    build: _Word  # "x86_64-pc-linux-gnu", "x86_64-pc-linux-musl"
    debug: bool
    free_threaded: bool
    path: str  # its own; in an environment, of the one that this was made with
    in_environment: bool
    libc: _Libc  # "glibc 2.36"; "": not glibc
    has_venv: bool

    def interpreter(self, path: str, found_in: str) -> Interpreter:
        """It, called by this path unless that is an environment's, or a script which starts it."""
        same = Path(path).resolve() == Path(self.path).resolve() and not self.in_environment
        return self._called(path if same or not is_executable(self.path) else self.path, found_in)

    def elsewhere(self, path: str, machine: str) -> Interpreter:
        """It, on another machine, which called it by this path."""
        return self._called(self.path if self.in_environment and self.path else path, machine)

    def _called(self, path: str, found_in: str) -> Interpreter:
        library, _, glibc = self.libc.partition(" ")
        return Interpreter(
            path=path,
            version=self.version,
            found_in=found_in,
            implementation=self.implementation,
            architecture=self.architecture,
            libc=library or ("musl" if "musl" in f"{self.build} {self.abi}" else "unknown"),
            tags=tags(self.version, self.abi, self.architecture, glibc, debug=self.debug)
            if self.implementation == "CPython"
            else [],
            has_venv=self.has_venv,
            free_threaded=self.free_threaded,
        )


def ask(paths: Iterable[str]) -> dict[str, InterpreterAnswer | str]:
    """Start each of these interpreters once and ask it; from the main thread.

    Of one that does not answer: why, as the end of a sentence that begins with its path.
    """
    code = script()
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    wanted = iter(dict.fromkeys(paths))
    answers: dict[str, InterpreterAnswer | str] = {}
    while some := list(islice(wanted, AT_ONCE)):
        results = processes.run_side_by_side(
            [[path, "-I", "-B", "-c", code] for path in some],
            deadline=DEADLINE,
            env=env,
            cwd=Path("/"),  # what a version manager reads in the working directory has no say
        )
        answers |= zip(some, map(_read, results), strict=True)
    return answers


def is_executable(path: str) -> bool:
    return Path(path).is_file() and os.access(path, os.X_OK)


def script() -> str:
    """What an interpreter runs to say what it is."""
    return Path(__file__).with_name("probe_script.py").read_text(encoding="utf-8")


def answer_in(text: bytes) -> InterpreterAnswer | None:
    """The answer in what an interpreter has printed, also on another machine; None where there is none."""
    begin, end = text.find(_BEGIN), text.rfind(_END)
    with suppress(ValueError):
        return json_text.read(text[begin + len(_BEGIN) : end], InterpreterAnswer)
    return None


def _read(result: Any) -> InterpreterAnswer | str:
    words: str = result.words_of_python()
    if not result.ok and (words or result.outcome != "exited" or result.code <= 0):
        return f"{result.describe()}: {words}" if words else str(result.describe())
    return (answer_in(result.stdout) if result.ok else None) or "is not a Python interpreter"
