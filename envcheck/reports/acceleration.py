"""The report's section on acceleration systems, memory and links: a row a system, with its state."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts.snapshot import Snapshot
from ..findings.model import DEEPER, Outcome
from .model import Report, was_left_out
from .plain import Column, together
from .results import ReportedFinding, ReportedResult
from .sections import Block, Note, ReportSection, Table

AREAS = ("memory", "acceleration")
_NOT_APPLICABLE = "not applicable"
_COULD_NOT_RUN = "could not run"
_STATES: dict[Outcome, str] = {
    "pass": "engaged",
    "fail": "not engaged",
    "warn": "in doubt",
    "could-not-run": _COULD_NOT_RUN,
    "skipped": _NOT_APPLICABLE,
}
_OF_MEMORY: dict[Outcome, str] = {"pass": "as it must be", "fail": "wrong", "warn": "slow"}
_ORDER = [*_STATES.values(), *_OF_MEMORY.values()]
_MANY = 6  # systems that are not applicable: more of them share a line, and -v names them
_DETAIL = 120  # characters of a pass, unless --verbose


def section(report: Report, snapshot: Snapshot, verbose: bool = True) -> ReportSection | None:
    """None where no system was asked for. What is not applicable, and what follows from a failure
    elsewhere, shares lines by its reasons."""
    results = asked(report)
    if not results:
        return None
    rows = []
    for result in (one for one in results if one.outcome != "skipped"):
        text = why(result)
        if not verbose and not result.findings and len(text) > _DETAIL:
            text = f"{text[:_DETAIL]}…"
        rows.append([(state(result), result.outcome), (result.title, ""), (text, "")])
    blocks: list[Block] = [Table([Column(), Column(), Column(wraps=True)], rows)] if rows else []
    blocks += _skipped([one for one in results if one.outcome == "skipped"], verbose)
    summary = ", ".join(f"{len(titles)} {word}" for word, titles in states(report).items())
    return ReportSection("acceleration", "Acceleration", summary, blocks)


def _skipped(results: list[ReportedResult], verbose: bool) -> Iterator[Note]:
    unused = [one for one in results if state(one) == _NOT_APPLICABLE]
    if len(unused) > _MANY and not verbose:
        reasons = "; ".join(dict.fromkeys(filter(None, map(why, unused))))
        yield Note(
            [(f"{_NOT_APPLICABLE}:", "skipped"), (f"{len(unused)} systems ({reasons})", "")], 1
        )
        results = [one for one in results if one not in unused]
    for words, titles in together(
        (f"{state(one)}\n{why(one)}", one.title) for one in results
    ).items():
        word, _, reason = words.partition("\n")
        quiet = [(f"({reason})", "quiet")] if reason else []
        yield Note([(f"{word}:", "skipped"), (", ".join(titles), ""), *quiet], 1)


def asked(report: Report) -> list[ReportedResult]:
    """The results of systems that were to run."""
    return [
        result
        for result in report.results
        if result.area in AREAS and result.reason != DEEPER and not was_left_out(result)
    ]


def state(result: ReportedResult) -> str:
    """ "engaged", "not engaged", "could not run", "not applicable"; of memory and links other words."""
    if result.outcome == "skipped" and result.consequence_of:
        return _COULD_NOT_RUN
    words = _OF_MEMORY if result.area == "memory" else {}
    return words.get(result.outcome, _STATES[result.outcome])


def why(result: ReportedResult) -> str:
    if result.outcome == "pass":
        return result.detail
    if result.consequence_of:
        return f"because of {result.consequence_of}"
    if result.findings:
        return "; ".join(dict.fromkeys(map(_headline, result.findings)))
    return result.reason.removeprefix(f"{_NOT_APPLICABLE}: ")


def _headline(finding: ReportedFinding) -> str:
    """With the framework that it is about."""
    text = finding.headline or finding.message
    names = [one.name for one in finding.subjects if one.kind == "framework"]
    missing = [name for name in names if name not in text]
    return f"{text} ({', '.join(missing)})" if missing else text


def states(report: Report) -> dict[str, list[str]]:
    """{state: titles of systems}"""
    found = together((state(one), one.title) for one in asked(report))
    return {word: found[word] for word in _ORDER if word in found}
