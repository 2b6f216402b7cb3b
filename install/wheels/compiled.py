"""Resolving with `uv pip compile`: what it is given, and what it answers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from ...exit_codes import CouldNotLook
from ..pythons.interpreter import Interpreter
from . import uv, uv_errors

if TYPE_CHECKING:
    from ..index.server import IndexServer

# The newest glibc levels that uv's --python-platform knows, below 2.28 there is one.
_LEVELS = (17, 28, *range(31, 41))

_PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>\S+)")


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """One package of a resolution."""

    name: str  # normalised
    version: str
    needed_by: list[str]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The Python that is resolved for."""

    minor: str
    architecture: str
    glibc: str  # "2.36"; "" where it is not known
    interpreter: Interpreter | None  # None: it has to be got first

    def options(self) -> list[str]:
        if self.interpreter is not None:
            return ["--python", self.interpreter.path]
        given = ["--python", sys.executable, "--python-version", self.minor]
        level = _level(self.glibc)
        return [*given, *(["--python-platform", f"{self.architecture}-{level}"] if level else [])]


class NoSolution(Exception):
    """The requirements cannot be met; the words are uv's, ``whole`` is all of them."""

    def __init__(self, explanation: str, whole: str) -> None:
        super().__init__(explanation)
        self.whole = whole
        self.hints = uv_errors.hints(whole)


def compile_(
    requirements: Iterable[str],
    constraints: Iterable[str],
    build_constraints: Iterable[str],
    target: Target,
    server: IndexServer,
) -> list[Pin]:
    """The packages that meet the requirements, by name.

    Raises NoSolution, and CouldNotLook where uv fails otherwise: an sdist's metadata cannot be built.
    """
    with TemporaryDirectory(prefix="envcheck-") as scratch:
        wanted = _lines(Path(scratch) / "requirements.in", requirements)
        bounds = _lines(Path(scratch) / "constraints.txt", constraints)
        tools = _lines(Path(scratch) / "build-constraints.txt", build_constraints)
        argv: list[str | Path] = ["pip", "compile", wanted, "--constraints", bounds]
        argv += ["--build-constraints", tools, *target.options()]
        argv += ["--no-header", "--annotation-style", "line", "--no-sources", "--quiet"]
        result = uv.run(argv, server, {})
    if not result.ok:
        whole = result.stderr.decode("utf-8", "replace")
        if "No solution found" in whole:
            raise NoSolution(uv_errors.sentence(result), whole)
        raise CouldNotLook(f"uv could not resolve the requirements: {uv_errors.sentence(result)}")
    return parse(result.stdout.decode("utf-8"))


def parse(output: str) -> list[Pin]:
    """`NAME==VERSION  # via A, B`, a line each, as --annotation-style=line writes it."""
    pins = []
    for line in output.splitlines():
        pinned, _, via = line.partition("# via ")
        found = _PIN.match(pinned.strip())
        if found is None:
            continue
        needed_by = [one.strip() for one in via.split(",")]
        names: list[str] = [
            canonicalize_name(one) for one in needed_by if one and not one.startswith("-")
        ]
        pins.append(
            Pin(name=canonicalize_name(found["name"]), version=found["version"], needed_by=names)
        )
    return sorted(pins, key=lambda pin: pin.name)


def _level(glibc: str) -> str:
    found = re.fullmatch(r"2\.(\d+)", glibc)
    fitting: Sequence[int] = [n for n in _LEVELS if found and n <= int(found[1])]
    return f"manylinux_2_{fitting[-1]}" if fitting else ""


def _lines(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
