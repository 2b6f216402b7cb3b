"""Resolving until every claimed package comes from its own index: pass after pass of `uv pip compile`.

uv binds direct requirements to an index, and nothing else. So each claimed name that turns up becomes one,
and uv is asked again, until none is left; what is then needed by nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..catalogue.model import PUBLIC, Sdist
from . import origin, uv_compile
from .indexes import Indexes
from .pins import PROJECT, NoSolution, Pin, Question, Target

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def solve(
    wanted: Sequence[str],
    bounds: Sequence[str],
    target: Target,
    indexes: Indexes,
    *,
    likely: Iterable[str] = (),
) -> list[Pin]:
    """What the requirements need within the bounds, each package with the files of its version.

    likely: names that will turn up, which saves passes. Raises NoSolution; Cannot for a package from another
    index than its own; CouldNotLook where an index or uv fails.
    """
    passes = _Passes(wanted, bounds, indexes)
    passes.guessed = passes.claimed(likely)
    while True:
        question = passes.question()
        try:
            pins = uv_compile.compile_(question, target, indexes)
        except NoSolution as error:
            if not passes.learned(error):
                raise
            continue
        new = passes.claimed(pin.name for pin in pins) - passes.guessed
        if not new:
            break
        passes.direct |= new
    needed = _needed(pins, passes.names)
    origin.check(needed, indexes)
    return uv_compile.with_files(needed, question, target, indexes)


class _Passes:
    """What the passes until now have shown."""

    def __init__(self, wanted: Sequence[str], bounds: Sequence[str], indexes: Indexes) -> None:
        self.names: set[str] = {canonicalize_name(Requirement(one).name) for one in wanted}
        self.direct: set[str] = set()  # claimed names that have turned up
        self.guessed: set[str] = set()
        self._wanted = list(wanted)
        self._bounds = list(bounds)
        self._stack = indexes.stack
        self._not_there: set[str] = set()  # claimed names that their index does not have
        self._sdists = [one for one in self._stack.sdists if _is_pinned(one, [*wanted, *bounds])]

    def question(self) -> Question:
        return Question(
            requirements=self._wanted,
            constraints=self._bounds,
            direct=sorted(self.direct | self.guessed),
            sdists=list(self._sdists),
        )

    def claimed(self, names: Iterable[str]) -> set[str]:
        """Those that belong to an own index of the stack, and nobody has bound to it yet."""
        known = self.names | self.direct | self._not_there
        return {name for name in names if self._stack.index_of(name) != PUBLIC} - known

    def learned(self, error: NoSolution) -> bool:
        """Whether uv's explanation says what to do otherwise in another pass."""
        if self.guessed:
            self.guessed = set()
            return True
        named = {canonicalize_name(word.rstrip("._-")) for word in _WORD.findall(error.whole)}
        for name in self.direct & named:
            # Nothing but envcheck asks for it by name.
            absent = f"Because {name} was not found in the package registry and {PROJECT} depends on {name}"
            if absent in " ".join(error.whole.split()):
                self.direct.remove(name)
                self._not_there.add(name)
                return True
        for sdist in self._stack.sdists:
            if canonicalize_name(sdist.name) in named and sdist not in self._sdists:
                self._sdists.append(sdist)
                return True
        new = self.claimed(named)
        self.direct |= new
        return bool(new)


def _needed(pins: Sequence[Pin], wanted: set[str]) -> list[Pin]:
    """Without what only was a direct requirement so that it came from its index."""
    kept = set(wanted)
    while more := {pin.name for pin in pins if not kept.isdisjoint(pin.needed_by)} - kept:
        kept |= more
    return [
        msgspec.structs.replace(pin, needed_by=[name for name in pin.needed_by if name in kept])
        for pin in pins
        if pin.name in kept
    ]


def _is_pinned(sdist: Sdist, lines: Sequence[str]) -> bool:
    """Whether the requirements leave this version alone."""
    for line in lines:
        wanted = Requirement(line)
        exact = any(one.operator in ("==", "===") for one in wanted.specifier)
        if canonicalize_name(wanted.name) == canonicalize_name(sdist.name) and exact:
            return wanted.specifier.contains(sdist.version, True)
    return False
