"""One line an area: its worst outcome in a word, its facts, and how many checks it had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from ..checks.registry import area_title
from ..checks.registry import areas as all_areas
from ..facts.snapshot import Snapshot
from ..facts.view import is_container
from ..findings.model import ELSEWHERE, Outcome
from ..tensorcores.mode_verdict import ModeVerdict
from .model import Report, by_area, count, tally, was_left_out
from .plain import code_ranges, roots
from .results import ReportedResult
from .summary import area_facts

if TYPE_CHECKING:
    from .page import Page, Span

_ROOT = "only root may read its facts"

# What the areas of a target are called where none was looked at.
_TARGET = "Target"

# No area tells more facts than these, however many it has.
_FACTS = 8
_FACT_CELLS = 40  # of each


class _Line(msgspec.Struct, frozen=True):
    """One line of the table. ``why`` is told of a skipped area, facts and counts of the others."""

    name: str
    outcome: Outcome
    why: str
    more: str  # what else is told of it where there is room
    area: str
    results: list[ReportedResult]


def area_lines(page: Page, report: Report, snapshot: Snapshot) -> None:
    """The table of areas that were asked for: outcome, name, and the facts and counts of each."""
    from .page import Column

    rows: list[list[Span]] = []
    for line in _lines(report, snapshot):
        quiet = "quiet" if line.outcome == "skipped" else ""
        told = line.why + line.more
        told = told or _facts_and_counts(page, line, snapshot, report.tensor_cores)
        rows.append([(page.word(line.outcome), line.outcome), (line.name, ""), (told, quiet)])
    page.table([Column(), Column(), Column(wraps=True)], rows, gap=2)


def status_lines(page: Page, report: Report, snapshot: Snapshot) -> None:
    """The same in few lines: areas of which the same is to be said share one."""
    told = list(statuses(report, snapshot))
    cells = max((len(page.word(outcome)) for outcome, _, _ in told), default=0)
    for outcome, text, names in told:
        named = ", ".join(names) + (":" if text else "")
        style = "quiet" if outcome == "skipped" else ""
        if outcome == "skipped":
            room = page.width - cells - 2 - len(named)
            text = page.cut(page.clean(text), max(room, page.width // 3))
        spans = [(part, style) for part in (named, text) if part]
        page.hanging((page.word(outcome).ljust(cells), outcome), *spans)


def statuses(report: Report, snapshot: Snapshot) -> Iterator[tuple[Outcome, str, list[str]]]:
    """What is said of areas, and of which: (outcome, text, names)."""
    alike: dict[tuple[Outcome, str], list[str]] = {}
    for line in _lines(report, snapshot):
        alike.setdefault((line.outcome, _in_short(line)), []).append(line.name)
    for (outcome, text), names in alike.items():
        yield outcome, text, names


def _in_short(line: _Line) -> str:
    """What the line of an area adds to the verdict, the machine and the problems above it."""
    if line.outcome == "skipped":
        return line.why
    found = [result.code for result in line.results if result.outcome == line.outcome]
    return "" if line.outcome == "pass" else code_ranges(found)


def skipped_lines(page: Page, report: Report) -> None:
    """Why checks were skipped: each reason with its checks; consequences are with their failures."""
    reasons: dict[str, list[str]] = {}
    for result in report.results:
        said = result.outcome == "skipped" and not result.consequence_of
        if said and result.reason not in ELSEWHERE:
            reasons.setdefault(result.reason, []).append(result.code)
    if not reasons:
        return
    number = sum(map(len, reasons.values()))
    page.blank()
    page.paragraph((f"Skipped: {number} check{'' if number == 1 else 's'}", "heading"))
    for reason, codes in sorted(reasons.items(), key=lambda item: -len(item[1])):
        page.paragraph((f"{code_ranges(codes)}:", ""), (reason, "quiet"), indent=2, hanging=4)


def _lines(report: Report, snapshot: Snapshot) -> list[_Line]:
    ends = roots(report.results)
    areas = by_area(
        result
        for result in report.results
        if not was_left_out(result) and result.reason not in ELSEWHERE
    )
    if snapshot.target is None:
        areas = _folded(areas)
    elif not is_container(snapshot.target):
        areas.pop("boundary", None)
    for name in ("plugins", "network", "expected"):  # of no machine's concern that has none
        if area_outcome(areas.get(name, [])) == "skipped":
            areas.pop(name, None)
    lines = []
    for area, results in areas.items():
        outcome = area_outcome(results)
        why = _why_skipped(results, ends) if outcome == "skipped" else ("", "")
        lines.append(_Line(area_title(area), outcome, *why, area, results))
    return lines


def _folded(areas: dict[str, list[ReportedResult]]) -> dict[str, list[ReportedResult]]:
    """Areas of a target that was not looked at as one, if the one reason for all of them is that."""
    of_target = {area.name for area in all_areas().values() if area.of_target}
    target = {area: results for area, results in areas.items() if area in of_target}
    together = [result for results in target.values() for result in results]
    if len(target) < 2 or len({(r.outcome, r.reason, r.consequence_of) for r in together}) > 1:
        return areas
    return {area: these for area, these in areas.items() if area not in target} | {
        _TARGET: together
    }


def area_outcome(results: list[ReportedResult]) -> Outcome:
    """The area's worst outcome; where something follows from a failure elsewhere, it is not OK."""
    outcomes = {result.outcome for result in results}
    for worse in ("fail", "could-not-run", "warn"):
        if worse in outcomes:
            return worse
    if any(result.consequence_of for result in results) or "pass" not in outcomes:
        return "skipped"
    return "pass"


def _why_skipped(results: list[ReportedResult], ends: dict[str, str]) -> tuple[str, str]:
    """Why nothing is said of an area: the failure it follows from, else its commonest reason."""
    causes = dict.fromkeys(
        ends.get(result.code) or result.consequence_of
        for result in results
        if result.consequence_of
    )
    others = count(result for result in results if not result.consequence_of)
    if causes:
        why = f"skipped because of {', '.join(causes)}"
        return why, f"; {tally(others)}" if others.passed else ""
    reasons = Counter(
        _ROOT
        if result.unjudged and all(gap.needs_root for gap in result.unjudged)
        else result.reason
        for result in results
        if result.reason
    )
    if not reasons:
        return tally(others), ""
    reason, number = reasons.most_common(1)[0]
    return reason, f" ({number} of {len(results)})" if len(reasons) > 1 else ""


def _facts_and_counts(
    page: Page, line: _Line, snapshot: Snapshot, judged: list[ModeVerdict]
) -> str:
    told = islice(area_facts(line.area, snapshot, judged), _FACTS)
    facts = [page.cut(page.clean(fact), _FACT_CELLS) for fact in told]
    counts = tally(msgspec.structs.replace(count(line.results), consequences=0))
    return "; ".join(filter(None, (", ".join(facts), counts)))
