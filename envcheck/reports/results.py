"""Results as reports have them: causes and parameters made into words."""

from __future__ import annotations

import msgspec

from ..facts.evidence import Evidence
from ..findings.causes import Level, Param
from ..findings.model import CheckResult, Diagnosis, Outcome, Unjudged
from ..findings.remedy import Remedy
from ..findings.subjects import Subject, joined


class ReportedFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A Finding in words. cause: its key; params: what its sentence was made of."""

    cause: str
    level: Level
    headline: str
    message: str
    params: dict[str, Param] = {}
    subjects: list[Subject] = []
    evidence: list[Evidence] = []
    remedy: Remedy | None = None
    degrades: bool = False

    @property
    def subject(self) -> str:
        return joined(self.subjects)


class ReportedResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A CheckResult whose findings are in words."""

    code: str
    area: str
    title: str
    outcome: Outcome
    reason: str = ""
    detail: str = ""
    note: str = ""
    consequence_of: str = ""
    findings: list[ReportedFinding] = []
    unjudged: list[Unjudged] = []


_OF_FINDING = [one for one in ReportedFinding.__struct_fields__ if one != "cause"]

# What code that only counts outcomes takes.
AnyResult = CheckResult | ReportedResult


def fails(result: AnyResult, fail_on: str) -> bool:
    """Whether `--fail-on` makes a problem of a result."""
    if result.outcome in ("pass", "skipped"):
        return False
    degrades = any(finding.degrades for finding in result.findings)
    counted = {"fail": False, "degraded": degrades, "warn": degrades or result.outcome == "warn"}
    return result.outcome == "fail" or counted[fail_on]


def reported_results(diagnosis: Diagnosis) -> list[ReportedResult]:
    return [_reported(result) for result in diagnosis.results]


def _reported(result: CheckResult) -> ReportedResult:
    findings = [
        ReportedFinding(cause=one.cause.key, **{name: getattr(one, name) for name in _OF_FINDING})
        for one in result.findings
    ]
    return ReportedResult(**msgspec.structs.asdict(result) | {"findings": findings})
