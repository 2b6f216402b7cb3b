"""Which sections of a Snapshot checks read, so that --only and --skip collect no others.

``checks.csv`` is recorded on all machines that the tests know (tests/generate.py). What a check reads
depends on what it finds, so `missing` says what it reads of this machine beyond that: the doctor then looks
again, at everything. A check of a plug-in has no row: it may read everything.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from ..facts.profile import Profile
from ..facts.recording import SECTIONS, read_by, recorded
from ..facts.snapshot import MACHINE_SECTIONS, TARGET_SECTIONS, Snapshot
from .engine import diagnose, is_chosen, with_causes
from .purpose import NO_GPU
from .registry import all_checks, listed

PROBES = MACHINE_SECTIONS | TARGET_SECTIONS | {"extensions"}


@cache
def table() -> dict[str, frozenset[str]]:
    """{a check's code: the sections that it reads}"""
    return {code: frozenset(row.sections.split()) for code, row in listed().items()}


def needed(only: Collection[str], skip: Collection[str]) -> frozenset[str]:
    """What the chosen checks read, and the check that may explain them by a machine without a GPU.

    The host's section says how a remedy's commands are written. What runs on GPUs (micro-kernels, systems)
    rests on what the probes found, so checks of such work need every probe.
    """
    every = {check.code: check for check in all_checks()}
    chosen = {check.code for check in every.values() if is_chosen(check, only, skip)}
    codes = chosen | ({NO_GPU} & with_causes(chosen, every))
    found = frozenset({"host"}).union(*(table().get(code, SECTIONS) for code in codes))
    return found if found <= PROBES else found | PROBES


def is_read(section: str, only: Collection[str], skip: Collection[str]) -> bool:
    """Whether one of the chosen checks itself reads that section; for checks of envcheck's own."""
    return any(
        section in table().get(check.code, ())
        for check in all_checks()
        if is_chosen(check, only, skip)
    )


def missing(
    snapshot: Snapshot,
    collected: frozenset[str],
    only: Collection[str],
    skip: Collection[str],
    profile: Profile | None,
) -> frozenset[str]:
    """The probes' sections that the chosen checks read of this Snapshot, and that were not collected."""
    if collected >= PROBES:
        return frozenset()
    _, read = read_by(lambda: diagnose(recorded(snapshot), only, skip, profile=profile))
    return PROBES & read - collected
