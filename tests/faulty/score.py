"""Holds a report against the truth: found, named, remedied, misled."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from world.bases import BASES
from world.machine import Machine

from .model import THEMES, Fault, Truth


@dataclass(frozen=True)
class Finding:
    """A finding of the report, in one piece of text for each thing that is asked of it."""

    code: str
    level: str
    subject: str
    words: str
    remedy: str


@dataclass
class Score:
    """What became of one fault."""

    name: str
    theme: str
    found: bool
    named: bool
    remedied: bool
    misleading: list[str] = field(default_factory=list)  # "CODE: message"
    why: str = ""  # of a miss: what was found instead
    unseen: str = ""


def shown(report: dict[str, Any]) -> list[Finding]:
    """The findings that a reader is shown: those that follow from another are none."""
    found = []
    for result in report["results"]:
        if result["outcome"] not in ("fail", "warn") or result.get("consequence_of"):
            continue
        for finding in result.get("findings", ()):
            remedy = finding.get("remedy") or {}
            subjects = "; ".join(subject["text"] for subject in finding.get("subjects", ()))
            evidence = "; ".join(
                f"{item.get('fact', item.get('path', ''))} = {item.get('value', '')}"
                for item in finding.get("evidence", ())
            )
            found.append(
                Finding(
                    result["code"],
                    finding["level"],
                    f"{subjects}; {finding['message']}",
                    f"{finding['message']} {finding.get('headline', '')} {evidence}",
                    "\n".join([remedy.get("text", ""), *remedy.get("commands", ())]),
                )
            )
    return found


def _fits(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.I | re.S) is not None


def _subject(pattern: str, base: str) -> str:
    """A GPU by its number, or by its address."""
    addresses = [re.escape(gpu.address[:-2]) for gpu in _base(base).gpus]
    return re.sub(r"GPU (\d)\\b", lambda n: rf"(GPU {n[1]}\b|{addresses[int(n[1])]})", pattern)


@cache
def _base(name: str) -> Machine:
    return BASES[name]()


def _judge(truth: Truth, findings: Iterable[Finding], base: str) -> tuple[bool, bool, bool]:
    """(seen, named with its subject and cause, remedied) by the best of the findings."""
    best = (False, False, False)
    for finding in findings:
        if not re.fullmatch(truth.codes, finding.code):
            continue
        named = _fits(_subject(truth.subject, base), finding.subject) and _fits(
            truth.cause, finding.words
        )
        best = max(best, (True, named, named and _fits(truth.remedy, finding.remedy)))
    return best


def judge(fault: Fault, report: dict[str, Any]) -> Score:
    findings = shown(report)
    needed = fault.truths[:1] if fault.order else fault.truths
    judged = [_judge(truth, findings, fault.base) for truth in needed]
    found, named, remedied = (all(column) for column in zip(*judged, strict=True))
    allowed = "|".join(
        [truth.codes for truth in fault.truths] + ([fault.also] if fault.also else [])
    )
    misleading = [
        f"{finding.code}: {finding.words.strip()[:160]}"
        for finding in findings
        if finding.level == "fail" and not re.fullmatch(allowed, finding.code)
    ]
    why = ""
    if not (found and named and remedied):
        why = _why(needed, judged, findings)
    return Score(fault.name, fault.theme, found, named, remedied, misleading, why, fault.unseen)


def _why(
    truths: Iterable[Truth], judged: Iterable[tuple[bool, bool, bool]], findings: list[Finding]
) -> str:
    pieces = []
    for truth, (found, named, remedied) in zip(truths, judged, strict=True):
        about = [finding for finding in findings if re.fullmatch(truth.codes, finding.code)]
        if not found:
            others = ", ".join(sorted({finding.code for finding in findings})) or "nothing"
            pieces.append(f"not found (found: {others})")
        elif not named:
            pieces.append(f"{about[0].code} names something else: {about[0].words.strip()[:140]}")
        elif not remedied:
            pieces.append(f"{about[0].code} has another remedy: {about[0].remedy.strip()[:140]}")
    return "; ".join(pieces)


def crashed(fault: Fault, words: str) -> Score:
    """envcheck did not come back with a report: nothing is found, and nothing of it is true."""
    return Score(
        fault.name, fault.theme, False, False, False, [f"no report: {words[:160]}"], "no report"
    )


@dataclass
class Row:
    """A line of the table."""

    name: str
    faults: int = 0
    found: int = 0
    named: int = 0
    remedied: int = 0
    misleading: int = 0

    def count(self, score: Score) -> None:
        self.faults += 1
        self.found += score.found
        self.named += score.named
        self.remedied += score.remedied
        self.misleading += len(score.misleading)


def by_theme(scores: Iterable[Score]) -> list[Row]:
    rows = {theme: Row(theme) for theme in THEMES}
    for score in scores:
        rows[score.theme].count(score)
    return [row for row in rows.values() if row.faults]


def total(rows: Iterable[Row], name: str = "all faults") -> Row:
    rows = list(rows)
    return Row(
        name,
        *(
            sum(getattr(row, column) for row in rows)
            for column in ("faults", "found", "named", "remedied", "misleading")
        ),
    )
