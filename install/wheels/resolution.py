"""Resolving until every claimed package comes from its own index: pass after pass of `uv pip compile`.

uv binds direct requirements to an index, and nothing else. So each claimed name that turns up becomes one,
and uv is asked again, until none is left; what is then needed by nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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
    return _Passes(wanted, bounds, target, indexes).run(likely)


class _Passes:
    """What the passes until now have shown."""

    def __init__(
        self, wanted: Sequence[str], bounds: Sequence[str], target: Target, indexes: Indexes
    ) -> None:
        self._wanted = list(wanted)
        self._names = {_name(one) for one in wanted}
        self._bounds = list(bounds)
        self._target = target
        self._indexes = indexes
        self._direct: set[str] = set()  # claimed names that have turned up
        self._guessed: set[str] = set()
        self._not_there: set[str] = set()  # claimed names that their index does not have
        self._sdists = [one for one in indexes.stack.sdists if _is_pinned(one, [*wanted, *bounds])]

    def run(self, likely: Iterable[str]) -> list[Pin]:
        self._guessed = self._claimed(likely)
        while True:
            question = self._question()
            try:
                pins = uv_compile.compile_(question, self._target, self._indexes)
            except NoSolution as error:
                if not self._learned(error):
                    raise
                continue
            new = self._claimed(pin.name for pin in pins) - self._guessed
            if not new:
                break
            self._direct |= new
        needed = _needed(pins, self._names)
        origin.check(needed, self._indexes)
        return uv_compile.with_files(needed, question, self._target, self._indexes)

    def _question(self) -> Question:
        return Question(
            requirements=self._wanted,
            constraints=self._bounds,
            direct=sorted(self._direct | self._guessed),
            sdists=list(self._sdists),
        )

    def _claimed(self, names: Iterable[str]) -> set[str]:
        """Those that belong to an own index of the stack, and nobody has bound to it yet."""
        known = self._names | self._direct | self._not_there
        return {name for name in names if self._indexes.stack.index_of(name) != PUBLIC} - known

    def _learned(self, error: NoSolution) -> bool:
        """Whether uv's explanation says what to do otherwise in another pass."""
        if self._guessed:
            self._guessed = set()
            return True
        named = {canonicalize_name(word.rstrip("._-")) for word in _WORD.findall(error.whole)}
        for name in self._direct & named:
            # Nothing but envcheck asks for it by name.
            absent = f"Because {name} was not found in the package registry and {PROJECT} depends on {name}"
            if absent in " ".join(error.whole.split()):
                self._direct.remove(name)
                self._not_there.add(name)
                return True
        for sdist in self._indexes.stack.sdists:
            if canonicalize_name(sdist.name) in named and sdist not in self._sdists:
                self._sdists.append(sdist)
                return True
        new = self._claimed(named)
        self._direct |= new
        return bool(new)


def _needed(pins: Sequence[Pin], wanted: set[str]) -> list[Pin]:
    """Without what only was a direct requirement so that it came from its index."""
    kept = set(wanted)
    while more := {pin.name for pin in pins if not kept.isdisjoint(pin.needed_by)} - kept:
        kept |= more
    bare = []
    for pin in pins:
        if pin.name in kept:
            needed_by = [name for name in pin.needed_by if name in kept]
            bare.append(
                Pin(name=pin.name, version=pin.version, index=pin.index, needed_by=needed_by)
            )
    return bare


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def _is_pinned(sdist: Sdist, lines: Sequence[str]) -> bool:
    """Whether the requirements leave this version alone."""
    for line in lines:
        wanted = Requirement(line)
        exact = any(one.operator in ("==", "===") for one in wanted.specifier)
        if canonicalize_name(wanted.name) == canonicalize_name(sdist.name) and exact:
            return wanted.specifier.contains(sdist.version, True)
    return False
