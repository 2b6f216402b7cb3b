"""Which release goes into a bundle, and for which of its destinations there are wheels of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ...exit_codes import Cannot
from ...facts.snapshot import Snapshot
from ..catalogue import load as catalogue
from ..catalogue.model import Release, Stack
from ..fit import select
from ..fit.fit import fit
from ..fit.models import Candidate, Choice, sentences
from ..pythons.interpreter import Interpreter, listed, number
from ..request import Request
from .destinations import Destination, Destinations


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """A Python that the bundle holds packages for."""

    choice: Choice  # with that interpreter
    systems: list[str]

    @property
    def interpreter(self) -> Interpreter:
        found = self.choice.candidate.interpreter
        assert found is not None, "it was chosen for one"
        return found


class BundleContent(msgspec.Struct, frozen=True, kw_only=True):
    stack: Stack
    release: Release
    served: list[Served]  # oldest Python first
    not_served: dict[str, str]  # system → why its own Python does not do
    carry: str  # the version of Python that the bundle is to carry


def choose(
    request: Request,
    wanted: Destinations,
    snapshots: Mapping[str, Snapshot],
    answers: Callable[[Stack], str],
) -> BundleContent:
    """The newest release that every destination which the user named can have.

    snapshots: of the destinations' machines, "" is this one. answers: as of select.choose.
    Raises Cannot, UsageError.
    """
    request = msgspec.structs.replace(request, python="")
    destinations = wanted.of_stack()
    stack = _stack(request, snapshots, answers)
    judged = [_judge(stack, request, one, snapshots[one.machine]) for one in destinations]
    release = _release(request, stack, destinations, judged)
    served: list[Served] = []
    not_served: dict[str, str] = {}
    for destination, candidates in zip(destinations, judged, strict=True):
        candidate = candidates[release.release]
        if candidate.fits:
            served.append(_served(stack, candidate, destination.systems))
        else:
            not_served |= dict.fromkeys(destination.systems, _why(destination, candidate))
    served = _merged(served)
    for one in (system for own in served for system in own.systems):
        not_served.pop(one, None)  # another Python of the same machine does
    carry = (served[-1].interpreter.minor if served else "") or max(release.python, key=number)
    if not served:
        served = [_carried(request, stack, release, wanted, snapshots)]
    return BundleContent(
        stack=stack, release=release, served=served, not_served=not_served, carry=carry
    )


def _stack(
    request: Request, snapshots: Mapping[str, Snapshot], answers: Callable[[Stack], str]
) -> Stack:
    """By everything but the Python, which a bundle can carry. Raises Cannot where none fits a machine."""
    found = None
    for snapshot in snapshots.values():
        choice = select.choose(request, snapshot, None, [], answers)
        if found is not None and choice.stack.name != found.name:
            raise Cannot(
                f"{found.name} fits one of these machines best, and {choice.stack.name} another",
                "name the stack, or make a bundle for each of them",
            )
        found = choice.stack
    assert found is not None, "there is always a machine"
    return found


def _judge(
    stack: Stack, request: Request, destination: Destination, snapshot: Snapshot
) -> dict[str, Candidate]:
    judged = fit(stack, snapshot, [destination.interpreter], [], request)
    return {
        one.release.release: one.named() if request.release else one for one in judged.candidates
    }


def _release(
    request: Request,
    stack: Stack,
    destinations: Sequence[Destination],
    judged: Sequence[Mapping[str, Candidate]],
) -> Release:
    """The one that was named, else the newest that is for all required Pythons, else for any."""
    named = catalogue.find(stack, request.release) if request.release else None
    required = [
        (destination.minor, candidates)
        for destination, candidates in zip(destinations, judged, strict=True)
        if destination.required
    ]
    considered = [named] if named else stack.releases
    for release in considered:
        fits = [candidates[release.release].fits for _, candidates in required]
        if all(fits) if fits else any(one[release.release].fits for one in judged):
            return release
    if required:
        raise _no_release_for(stack, named, required)
    return named or _but_for_python(stack, judged)


def _but_for_python(stack: Stack, judged: Sequence[Mapping[str, Candidate]]) -> Release:
    """The newest that only lacks a Python, which the bundle may carry. One is known to exist."""
    for release in stack.releases:
        for candidates in judged:
            if {one.kind for one in candidates[release.release].refusals} <= {"python"}:
                return release
    raise Cannot(f"no release of {stack.name} fits these machines")


def _no_release_for(
    stack: Stack, named: Release | None, required: Sequence[tuple[str, Mapping[str, Candidate]]]
) -> Cannot:
    release = named or stack.releases[0]
    refusals = [
        refusal
        for _, candidates in required
        for refusal in candidates[release.release].refusals
        if refusal.kind != "python"
    ]
    minors = listed([minor for minor, _ in required])
    is_for = f"is for Python {listed(release.python)}"
    if refusals:
        is_for = sentences(refusals[:1])
    if named:
        return Cannot(f"a bundle for Python {minors}: {stack.name} {release.release} {is_for}")
    return Cannot(
        f"no release of {stack.name} is for Python {minors}: the newest, {release.release}, {is_for}",
        "make a bundle for each Python that another release is for: --release"
        if len(required) > 1
        else "",
    )


def _why(destination: Destination, candidate: Candidate) -> str:
    others = [one for one in candidate.refusals if one.kind != "python"]
    if others:
        return f"it {sentences(others)}"
    return f"its Python is {destination.minor}"


def _served(stack: Stack, candidate: Candidate, systems: list[str]) -> Served:
    return Served(choice=Choice(stack=stack, candidate=candidate), systems=systems)


def _merged(served: Sequence[Served]) -> list[Served]:
    """One for each version of Python: the one with the fewest tags, whose wheels the others take, too."""
    found: dict[str, Served] = {}
    for one in served:
        minor = one.interpreter.minor
        other = found.get(minor, one)
        first = min(other, one, key=lambda two: len(two.interpreter.tags))
        systems = list(dict.fromkeys([*other.systems, *one.systems]))
        found[minor] = msgspec.structs.replace(first, systems=systems)
    return [found[minor] for minor in sorted(found, key=number)]


def _carried(
    request: Request,
    stack: Stack,
    release: Release,
    wanted: Destinations,
    snapshots: Mapping[str, Snapshot],
) -> Served:
    """For the Python that the bundle carries, or that has to be there."""
    interpreter = wanted.with_python(max(release.python, key=number))
    request = msgspec.structs.replace(request, release=release.release)
    snapshot = next(iter(snapshots.values()))
    judged = fit(stack, snapshot, [interpreter], [], request)
    candidate = next(one for one in judged.candidates if one.release == release).named()
    if not candidate.fits:
        raise Cannot(
            f"{stack.name} {release.release} cannot go into this bundle: it"
            f" {sentences(candidate.refusals)}"
        )
    return _served(stack, candidate, [])
