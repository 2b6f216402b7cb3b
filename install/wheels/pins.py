"""What is asked of a resolver, and what it answers: a pin for each package, with the files to choose from."""

from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

import msgspec

from ..catalogue.model import Sdist
from ..lockfile import LockedFile
from ..pythons.interpreter import Interpreter

PROJECT = "envcheck-resolution"  # what uv calls the requirements

# The glibc levels that uv's --python-platform knows, the newest first.
_LEVELS = (*range(40, 30, -1), 28, 17)

_MANYLINUX = re.compile(r"manylinux_(2_\d+)_")


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """One package of a resolution. ``files`` are those of its version that fit the Python."""

    name: str  # normalised
    version: str
    index: str  # the URL of the index that it comes from, as uv says
    needed_by: list[str]  # PROJECT for a direct requirement
    files: list[LockedFile] = []  # sha256 may be ""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The Python that is resolved for."""

    minor: str
    architecture: str
    glibc: str  # "2.36"; "" where it is not known
    interpreter: Interpreter | None  # None: it has to be got first

    @staticmethod
    def of(minor: str, interpreter: Interpreter | None) -> Target:
        """An interpreter that is there, or this minor version of Python on a machine like this one."""
        if interpreter is None:
            name, version = platform.libc_ver()
            glibc = ".".join(version.split(".")[:2]) if name == "glibc" else ""
            return Target(
                minor=minor, architecture=platform.machine(), glibc=glibc, interpreter=None
            )
        found = _MANYLINUX.search(" ".join(interpreter.tags[:2]))
        return Target(
            minor=interpreter.minor,
            architecture=interpreter.architecture,
            glibc=found[1].replace("_", ".") if found else "",
            interpreter=interpreter,
        )

    def options(self) -> list[str]:
        if self.interpreter is not None and Path(self.interpreter.path).is_absolute():
            return ["--python", self.interpreter.path]
        found = re.fullmatch(r"2\.(\d+)", self.glibc)
        level = next((n for n in _LEVELS if found and n <= int(found[1])), None)
        given = ["--python", sys.executable, "--python-version", self.minor]
        platform_ = f"{self.architecture}-manylinux_2_{level}"
        return [*given, *(["--python-platform", platform_] if level else [])]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What uv resolves in one pass."""

    requirements: list[str]
    constraints: list[str] = []
    direct: list[str] = []  # further names that become direct requirements, each with its index
    sdists: list[Sdist] = []  # whose source distribution is taken, in exactly this version
    dependencies: bool = True  # False: what the requirements need is left out


class NoSolution(Exception):
    """The requirements cannot be met; the words are uv's, ``whole`` is all of them."""

    def __init__(self, explanation: str, whole: str, hints: list[str]) -> None:
        super().__init__(explanation)
        self.whole = whole
        self.hints = hints
