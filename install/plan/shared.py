"""What the plans of both modes reckon and tell alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..fit.models import Selection, sentences
from ..pythons.interpreter import listed
from .models import Step

ASSUMED_RATE = 12.5e6  # bytes a second: 100 Mbit/s
DISK_RATE = 100e6  # bytes a second, read, hashed and written
VERIFY_SECONDS = 12.0  # importing a framework, once for the machine and once for the environment

ELSEWHERE = "--path DIR names another place"


class PlanInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What planning needs to know in both modes."""

    directory: str  # that holds the versions
    version: str  # the new version's name in it
    remarks: list[str] = []  # what was noticed on the way, a sentence each
    offline: bool = False  # what is not here comes from a bundle or an archive
    rate: float = 0.0  # bytes per second of the last installation; 0: there was none

    @property
    def expected_rate(self) -> tuple[float, str]:
        """(bytes a second to reckon with, where that is from)."""
        if self.offline:
            return DISK_RATE, "assumed for a disk"
        return (self.rate, "the last installation") if self.rate else (ASSUMED_RATE, "assumed")


def reasons(choice: Selection[Any, Any]) -> list[str]:
    """Why this and no newer one; releases that are skipped for the same reasons are told together."""
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


def verify_and_swap(must_pass: Sequence[str], what: str) -> list[Step]:
    """The last steps of every installation; what: "on it", "in it"."""
    must = f" (it must pass {', '.join(must_pass)})" if must_pass else ""
    return [
        Step(
            name="verify",
            sentence=f"run envcheck doctor {what}: no failure that was not there before{must}",
        ),
        Step(name="swap", sentence='point the link "current" at it'),
    ]


def number(count: int, what: str) -> str:
    """ "1 file", "3 files"."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _few(names: list[str]) -> str:
    """ "23.03, 23.01 and 22.10", "23.03, 23.01, 22.12 and 9 more"."""
    return listed(names if len(names) < 5 else [*names[:3], f"{len(names) - 3} more"])
