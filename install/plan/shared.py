"""What the plans of both modes have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from ...exit_codes import Cannot
from ..fit.disk_space import DiskSpace
from ..fit.models import Selection, sentences
from ..progress import size
from ..pythons.interpreter import listed
from .models import DiskNeed, Step

MIB = 1024 * 1024

ELSEWHERE = "--path DIR names another place"


class PlanInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What planning needs to know in both modes."""

    directory: str  # that holds the versions
    version: str  # the new version's name in it
    remarks: list[str] = []  # what was noticed on the way, a sentence each
    offline: bool = False  # what is not here comes from a bundle or an archive


def reasons(choice: Selection[Any, Any]) -> list[str]:
    """Why this and no newer one; releases that are skipped for the same reasons in one sentence."""
    newer: dict[str, list[str]] = {}
    for candidate in choice.newer_refused:
        newer.setdefault(sentences(candidate.refusals), []).append(candidate.release.release)
    skipped = [
        f"{names[0]} is skipped: it {why}"
        if len(names) == 1
        else f"{_few(names)} are skipped: each {why}"
        for why, names in newer.items()
    ]
    return [*choice.reasons, *skipped]


def fetching(verb: str, amount: int) -> Step:
    """verb: "fetch", or "copy" from a bundle. amount: bytes."""
    return Step(name="fetch", sentence=f"{verb} {size(amount) if amount else 'nothing'}")


# The last steps of every installation.
VERIFY_AND_SWAP = (
    Step(name="verify", sentence="verify with the doctor"),
    Step(name="swap", sentence="put it in use"),
)


def _few(names: list[str]) -> str:
    """ "23.03, 23.01 and 22.10", "23.03, 23.01, 22.12 and 9 more"."""
    return listed(names if len(names) < 5 else [*names[:3], f"{len(names) - 3} more"])


class DiskUse(NamedTuple):
    """Bytes that something will take at a place."""

    place: DiskSpace
    what: str  # "fetched files"
    size: int
    estimated: bool


def check_writable(place: DiskSpace, what: str, hint: str) -> None:
    """Raises Cannot for a place that this user cannot write to."""
    if place.read_only:
        raise Cannot(f"{place.path}, for {what}, is on a file system mounted read-only", hint)
    if not place.writable:
        raise Cannot(f"{place.path}, for {what}, cannot be written to by this user", hint)


def disk_needs(uses: Iterable[DiskUse], hint: str) -> list[DiskNeed]:
    """What each file system is asked to hold, the fullest first.

    Raises Cannot, with this hint, naming every one on which something is missing, and how much.
    """
    by_device: dict[int, list[DiskUse]] = {}
    for use in uses:
        by_device.setdefault(use.place.device, []).append(use)
    needs = [_need(together) for together in by_device.values()]
    full = [
        f"{size(need.missing_mib * MIB)} more needed at {need.path} ({'about ' * need.estimated}"
        f"{size(need.needed_mib * MIB)} for {' and '.join(need.what)},"
        f" {size((need.free_mib or 0) * MIB)} free)"
        for need in needs
        if need.missing_mib
    ]
    if full:
        raise Cannot("not enough space: " + "; ".join(full), hint)
    return sorted(needs, key=lambda need: -need.needed_mib)


def _need(uses: list[DiskUse]) -> DiskNeed:
    free = [use.place.free_mib for use in uses if use.place.free_mib is not None]
    return DiskNeed(
        path=max(uses, key=lambda use: use.size).place.path,
        what=[use.what for use in uses if use.size],
        needed_mib=-(-sum(use.size for use in uses) // MIB),
        free_mib=min(free, default=None),
        estimated=any(use.estimated for use in uses),
    )
