"""One line an area: its worst outcome in a word, its facts, and how many checks it had."""

from __future__ import annotations

from collections import Counter

import msgspec

from ..checks.model import CheckResult, Outcome
from ..checks.registry import AREAS
from ..snapshot import Snapshot
from .model import Report, by_area, count, tally
from .page import Page
from .plain import WORDS, roots
from .summary import area_facts

_ROOT = "only root may read its facts"


def area_lines(page: Page, report: Report, snapshot: Snapshot) -> None:
    """The table of areas, each on one line of the page's width."""
    areas = by_area(report.results)
    ends = roots(report.results)
    words = {area: area_outcome(results) for area, results in areas.items()}
    name_cells = max((len(AREAS.get(area, area)) for area in areas), default=0) + 2
    word_cells = max((len(WORDS[word]) for word in words.values()), default=0) + 2
    for area, results in areas.items():
        word = words[area]
        room = page.width - name_cells - word_cells
        tale = _why_skipped(results, ends) if word == "skipped" else ""
        text = page.clean(tale) if tale else _facts_and_counts(page, area, results, snapshot, room)
        page.line(
            (AREAS.get(area, area).ljust(name_cells), ""),
            (WORDS[word].ljust(word_cells), word),
            (page.cut(text, room), "quiet" if word == "skipped" else ""),
        )


def area_outcome(results: list[CheckResult]) -> Outcome:
    """The area's worst outcome; where something follows from a failure elsewhere, it is not OK."""
    outcomes = {result.outcome for result in results}
    for worse in ("fail", "could-not-run", "warn"):
        if worse in outcomes:
            return worse
    if any(result.consequence_of for result in results) or "pass" not in outcomes:
        return "skipped"
    return "pass"


def _why_skipped(results: list[CheckResult], ends: dict[str, str]) -> str:
    """Why nothing is said of an area: the failure it follows from, else its commonest reason."""
    causes = dict.fromkeys(
        ends.get(result.code) or result.consequence_of
        for result in results
        if result.consequence_of
    )
    others = count(result for result in results if not result.consequence_of)
    if causes:
        rest = f"; {tally(others)}" if others.passed else ""
        return f"follows from {', '.join(causes)}{rest}"
    reasons = Counter(
        _ROOT
        if result.unjudged and all(gap.needs_root for gap in result.unjudged)
        else result.reason
        for result in results
        if result.reason
    )
    if not reasons:
        return tally(others)
    reason, _ = reasons.most_common(1)[0]
    return reason if len(reasons) == 1 else f"{tally(others)}: {reason}"


def _facts_and_counts(
    page: Page, area: str, results: list[CheckResult], snapshot: Snapshot, room: int
) -> str:
    """As many of the area's facts as fit in front of its counts; a fact is worth more than how many
    checks were skipped."""
    facts = [page.clean(fact) for fact in area_facts(area, snapshot)]
    counts = msgspec.structs.replace(count(results), consequences=0)
    full, short = tally(counts), tally(msgspec.structs.replace(counts, skipped=0))
    for counted in (full, short):
        for number in range(len(facts), 0, -1):
            text = f"{', '.join(facts[:number])}; {counted}"
            if page.fits(text, room):
                return text
    return full
