"""What the plans of both modes reckon and tell alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..fit.models import JudgedRelease
from .models import Step

ASSUMED_RATE = 12.5e6  # bytes a second: 100 Mbit/s
DISK_RATE = 100e6  # bytes a second, read, hashed and written
VERIFY_SECONDS = 12.0  # importing a framework, once for the machine and once for the environment


def reasons(chosen: Sequence[str], newer_refused: Sequence[JudgedRelease[Any]]) -> list[str]:
    """Why this and no newer one; releases that are skipped for the same reasons are told together."""
    newer: dict[str, list[str]] = {}
    for candidate in newer_refused:
        told = "; it ".join(refusal.sentence for refusal in candidate.refusals)
        newer.setdefault(told, []).append(candidate.release.release)
    passed_over = [
        f"{names[0]} is skipped: it {told}"
        if len(names) == 1
        else f"{_few(names)} are skipped: each {told}"
        for told, names in newer.items()
    ]
    return [*chosen, *passed_over]


def rate(last: float, *, offline: bool) -> tuple[float, str]:
    """(bytes a second to reckon with, where that is from); last: of the last installation, 0 without one."""
    if offline:
        return DISK_RATE, "assumed for a disk"
    return (last, "the last installation") if last else (ASSUMED_RATE, "assumed")


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
    """ "23.03, 23.01 and 22.10", "23.03, 23.01 and 9 more"."""
    shown, last = (
        (names[:-1], names[-1]) if len(names) < 5 else (names[:3], f"{len(names) - 3} more")
    )
    return f"{', '.join(shown)} and {last}"
