"""What a report consists of, before it is text, Markdown or HTML: sections of problems, tables and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import msgspec

from ..facts.evidence import Evidence
from ..findings.model import Outcome, Remedy
from .headlines import devices_of, phrase
from .plain import Column, code_ranges, gaps, grouped, roots, together, unmentioned
from .plain import Span as Span
from .results import ReportedResult

GROUPS = 8  # findings of one check that are shown; the JSON report has all of them

_SHOWN: tuple[Outcome, ...] = ("fail", "warn", "could-not-run", "skipped")


class Heading(msgspec.Struct, frozen=True):
    spans: Sequence[Span]
    kind: ClassVar[str] = "heading"


class Note(msgspec.Struct, frozen=True):
    """A paragraph. indent: its depth below the heading."""

    spans: Sequence[Span]
    indent: int = 0
    kind: ClassVar[str] = "note"


class Table(msgspec.Struct, frozen=True):
    columns: Sequence[Column]
    rows: Sequence[Sequence[Span]]
    kind: ClassVar[str] = "table"


class Advice(msgspec.Struct, frozen=True):
    """What to do. here: on the reader's machine, whatever the report is about."""

    text: str
    commands: Sequence[str]
    here: bool = False
    kind: ClassVar[str] = "advice"


Block = Heading | Note | Table | Advice


class ReportSection(msgspec.Struct, frozen=True):
    """summary: one sentence. count: beside the title in a table of contents."""

    id: str
    title: str
    summary: str
    blocks: Sequence[Block]
    count: str = ""


class ReportedProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of one check that differ in subjects and evidence only, or checks that could not run.
    headline: the message in a phrase. devices: the GPUs that it is about, "GPU 3". follows: results that
    are consequences of it."""

    id: str
    outcome: Outcome
    code: str
    headline: str
    message: str
    devices: str = ""
    where: list[str] = []
    evidence: list[Evidence] = []
    gaps: list[str] = []
    follows: list[ReportedResult] = []
    remedy: Remedy | None = None


def problems(
    results: Sequence[ReportedResult], gpus: Mapping[str, int | None] | None = None
) -> Iterator[ReportedProblem]:
    """Worst first; consequences are part of the problem that they follow from. A consequence whose failure
    is not in the report stands for itself. gpus: as for ``phrase``."""
    ends = roots(results)
    following = together((ends[one.code], one) for one in results if ends.get(one.code))
    for outcome in _SHOWN:
        of_it = [one for one in results if one.outcome == outcome and not ends.get(one.code)]
        if outcome == "skipped":
            of_it = [one for one in of_it if one.code in ends]
        blocked: dict[str, list[ReportedResult]] = {}
        for result in sorted(of_it, key=lambda one: -len(following.get(one.code, ()))):
            if outcome == "could-not-run" and not result.findings:
                blocked.setdefault(result.reason, []).append(result)
            else:
                yield from _of_result(result, following.get(result.code, []), gpus or {})
        for reason, silent in blocked.items():
            codes = code_ranges(one.code for one in silent)
            words = f'"{silent[0].title}": {reason}' if len(silent) == 1 else reason
            yield _plain(outcome, codes, silent[0].title if len(silent) == 1 else "", words)


def _plain(outcome: Outcome, code: str, headline: str, message: str) -> ReportedProblem:
    return ReportedProblem(
        id=f"problem-{code.partition(' ')[0].rstrip(',')}-{outcome}",
        outcome=outcome,
        code=code,
        headline=headline,
        message=message,
    )


def _of_result(
    result: ReportedResult, follows: list[ReportedResult], gpus: Mapping[str, int | None]
) -> Iterator[ReportedProblem]:
    groups = grouped(result.findings)
    if result.outcome in ("could-not-run", "skipped") or not groups:
        words = f'"{result.title}": {result.reason}'
        yield _plain(result.outcome, result.code, result.title, words)
    for place, group in enumerate(groups[:GROUPS], 1):
        headline = phrase(group.headline, group.subjects, gpus) if group.headline else result.title
        yield ReportedProblem(
            id=f"problem-{result.code}" + (f"-{place}" if place > 1 else ""),
            outcome=group.level,
            code=result.code,
            headline=headline,
            message=group.message,
            devices=devices_of(group.subjects, gpus),
            where=unmentioned(group),
            evidence=group.evidence,
            gaps=gaps(result) if place == 1 and result.outcome == "fail" else [],
            follows=follows if place == 1 else [],
            remedy=group.remedy,
        )
    if (more := len(groups) - GROUPS) > 0:
        yield _plain(result.outcome, result.code, "", f"and {more} more in --format json")
