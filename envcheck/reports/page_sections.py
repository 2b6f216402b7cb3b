"""Sections of reports as sections of an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .html import PageSection
from .plain import WORDS, code_ranges
from .results import ReportedResult
from .sections import ReportSection, problems

OUTCOME_WORDS = {**WORDS, "skipped": "skipped"}
_EVIDENCE, _PROBLEMS = 12, 60


def page_section(one: ReportSection) -> PageSection:
    data = {"summary": one.summary, "blocks": one.blocks}
    return PageSection(one.id, one.title, "section.html", data, one.count)


def problem_sections(
    results: Sequence[ReportedResult], gpus: Mapping[str, int | None] | None = None, root: str = ""
) -> Iterator[PageSection]:
    """What is wrong, and what could not be checked; none where neither is. gpus: as for ``problems``."""
    found = list(problems(results, gpus))
    if not found:
        return
    outcomes = {one.outcome for one in found}
    titles = {"fail": "Problems", "warn": "Warnings"}
    title = next((titles[one] for one in titles if one in outcomes), "Not checked")
    data = {
        "problems": [
            (one, code_ranges(other.code for other in one.follows)) for one in found[:_PROBLEMS]
        ],
        "more": max(0, len(found) - _PROBLEMS),
        "evidence": _EVIDENCE,
        "root": root,
        "words": OUTCOME_WORDS,
    }
    yield PageSection("problems", title, "problems.html", data, str(len(found)))
