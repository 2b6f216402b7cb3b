"""What the doctor made of a case: found, named, remedied, and what it failed besides."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from faulty.score import Finding, shown

from .case import Case

HEALTHY = "^$"  # what ``says`` and ``does`` hold where nothing is wrong


class Seen(NamedTuple):
    """codes: all that stands by itself. others: failures that are not the case's cause."""

    named: bool
    remedied: bool
    codes: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def found(self) -> bool:
        return bool(self.codes)


def judge(case: Case, report: dict[str, Any]) -> Seen:
    findings = shown(report)
    if "(?=" in case.says:  # of two faults at once
        findings.append(_together(findings))
    codes = tuple(dict.fromkeys(one.code for one in findings if one.code))
    if case.says == HEALTHY:
        failures = tuple(one.code for one in findings if one.level == "fail")
        return Seen(not failures, not findings, codes, failures)
    notes = "\n".join(result.get("note", "") for result in report["results"])
    right = [one for one in findings if _names(case, one)]
    noted = not right and _fits(case.says, notes) and _fits(case.subject, notes)
    mended = [one for one in right if _fits(case.does, one.remedy)]
    others = {one.code for one in findings if one.level == "fail"} - {one.code for one in right}
    return Seen(
        bool(right) or noted,
        bool(mended) or (noted and _fits(case.does, notes)),
        codes,
        tuple(sorted(others)),
    )


def _together(findings: list[Finding]) -> Finding:
    texts = (
        "\n".join(of)
        for of in zip(*((f.subject, f.words, f.remedy) for f in findings), strict=True)
    )
    return Finding("", "", *texts) if findings else Finding("", "", "", "", "")


def _names(case: Case, finding: Finding) -> bool:
    return _fits(case.subject, finding.subject + finding.words) and _fits(case.says, finding.words)


def _fits(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None
