"""What each file system is asked to hold, and whether it can be written to. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...exit_codes import Cannot
from ..fit.disk_space import DiskSpace, gib
from .models import DiskNeed

MIB = 1024 * 1024


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
        f"{gib(need.missing_mib)} more needed at {need.path} ({'about ' * need.estimated}"
        f"{gib(need.needed_mib)} for {' and '.join(need.what)}, {gib(need.free_mib or 0)} free)"
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
