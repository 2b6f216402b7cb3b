"""What checks say: findings with their evidence and remedy, and each check's outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ..facts.missing import CannotJudge
from .causes import Finding, Level
from .remedy import Remedy
from .subjects import Subject, joined

__all__ = ["Finding", "Level", "Remedy"]

Outcome = Literal["pass", "warn", "fail", "skipped", "could-not-run"]

# Why a check of a deeper level is skipped: nobody wants to read that of each.
DEEPER = "only --level deep runs it"
# The same of a check on what another command runs.
BENCH = "only envcheck bench runs it"
SOAK = "only envcheck soak runs it"
# Of a check on micro-kernels, which the report says once more.
NO_KERNELS = "the micro-kernels were not run (no GPU, or --level quick)"
ELSEWHERE = frozenset((DEEPER, BENCH, SOAK))


class Unjudged(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A subject that the check applies to and could not judge."""

    outcome: Literal["skipped", "could-not-run"]
    reason: str
    subjects: list[Subject] = []
    needs_root: bool = False
    what: str = ""  # the fact that only root may read

    @property
    def subject(self) -> str:
        return joined(self.subjects)


class Passed(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Something was judged and is healthy; ``detail`` is worth a reader's time. note: it may explain what a
    user wonders about, so that every report shows it."""

    detail: str
    note: bool = False


Verdict = Finding | Unjudged | Passed


def unjudged(why: CannotJudge, subjects: Sequence[Subject] = ()) -> Unjudged:
    return Unjudged(why.outcome, str(why), list(subjects), why.needs_root, why.what)


class CheckResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One check's outcome in one run. ``reason`` is set for skipped and could-not-run."""

    code: str
    area: str
    title: str
    outcome: Outcome
    reason: str = ""
    detail: str = ""  # of a pass
    note: str = ""  # of a pass: what every report shows
    consequence_of: str = ""  # the code of the failed check that this one's findings follow from
    findings: list[Finding] = []
    unjudged: list[Unjudged] = []


class Diagnosis(msgspec.Struct, frozen=True):
    """Every registered check's result, in registry order."""

    results: list[CheckResult]
