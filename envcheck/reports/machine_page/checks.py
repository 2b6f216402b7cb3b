"""All checks with their outcomes: an area opens, and has a line for each."""

from __future__ import annotations

from collections.abc import Iterator

from ...checks.registry import area_title
from ...facts.snapshot import Snapshot
from ...findings.model import ELSEWHERE, CheckResult
from .. import html_page as html
from ..areas import area_outcome
from ..html_page import PageSection
from ..model import Report, by_area, count, tally, was_left_out
from ..plain import WORDS, code_ranges, gist
from ..plots.svg import text
from ..summary import area_facts

_FACTS = 6
_WORDS = {**WORDS, "skipped": "skipped"}


def checks(report: Report, snapshot: Snapshot) -> PageSection:
    parts = []
    for area, results in by_area(report.results).items():
        parts.append(_area(area, results, report, snapshot))
    told = [html.paragraph(tally(report.counts) + ".")]
    body = f'<div class="areas">{"".join(parts)}</div>'
    return PageSection("checks", "All checks", [*told, body], str(len(report.results)))


def _area(area: str, results: list[CheckResult], report: Report, snapshot: Snapshot) -> str:
    outcome = area_outcome(results)
    known = area_facts(area, snapshot, report.tensor_cores)[:_FACTS]
    told = "; ".join(filter(None, (", ".join(known), tally(count(results)))))
    summary = (
        f"{html.state(outcome, _WORDS[outcome])} "
        f'<span class="name">{text(area_title(area))}</span> <span class="told">{text(told)}</span>'
    )
    return html.details(summary, "".join(_rows(results))) + "\n"


def _rows(results: list[CheckResult]) -> Iterator[str]:
    """A row a check; those that nobody asked for share a line."""
    aside: dict[str, list[str]] = {}
    rows = []
    for result in results:
        if was_left_out(result) or result.reason in ELSEWHERE:
            aside.setdefault(result.reason, []).append(result.code)
            continue
        state = html.state(result.outcome, _WORDS[result.outcome])
        rows.append(
            [
                (f'<span class="code">{text(result.code)}</span>', ""),
                (state, ""),
                (text(result.title), ""),
                (text(_why(result)), ""),
            ]
        )
    if rows:
        columns = [
            ("Check", ""),
            ("Outcome", ""),
            ("What it asks for", "wraps"),
            ("What was seen", "wraps"),
        ]
        yield html.markup_table(columns, rows)
    for reason, codes in aside.items():
        yield html.paragraph(f"{code_ranges(codes)}: {reason}", "quiet")


def _why(result: CheckResult) -> str:
    because = f"because of {result.consequence_of}: " if result.consequence_of else ""
    if result.outcome == "pass":
        return result.detail
    return because + gist(result)
