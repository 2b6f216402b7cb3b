"""Sections of reports as sections of an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..facts.base import known
from ..facts.kernel import Kernel
from ..facts.snapshot import Snapshot
from .evidence_words import evidence_lines
from .headlines import gpu_indices
from .html import PageSection
from .machine import facts
from .plain import WORDS, code_ranges, duration
from .results import ReportedResult
from .sections import ReportedProblem, ReportSection, problems

OUTCOME_WORDS = {**WORDS, "skipped": "skipped"}
_EVIDENCE, _PROBLEMS = 24, 60


def page_section(one: ReportSection) -> PageSection:
    data = {"summary": one.summary, "blocks": one.blocks}
    return PageSection(one.id, one.title, "section.html", data, one.count)


def problem_sections(
    results: Sequence[ReportedResult], snapshot: Snapshot, root: str = ""
) -> Iterator[PageSection]:
    """What is wrong, and what could not be checked, as a table and then each with its evidence; none where
    neither is."""
    found = list(problems(results, gpu_indices(snapshot)))
    if not found:
        return
    outcomes = {one.outcome for one in found}
    titles = {"fail": "Problems", "warn": "Warnings"}
    title = next((titles[one] for one in titles if one in outcomes), "Not checked")
    data = {
        "problems": [
            (
                one,
                _when(one, snapshot),
                code_ranges(other.code for other in one.follows),
                list(evidence_lines(one.evidence[:_EVIDENCE], snapshot)),
            )
            for one in found[:_PROBLEMS]
        ],
        "more": max(0, len(found) - _PROBLEMS),
        "shown": _EVIDENCE,
        "root": root,
        "words": OUTCOME_WORDS,
    }
    yield PageSection("problems", title, "problems.html", data, str(len(found)))
    yield PageSection("details", "Evidence and what to do", "details.html", data)


def _when(one: ReportedProblem, snapshot: Snapshot) -> str:
    """ "26 h after boot", "4 times, last 26 h after boot": of the kernel's messages that it rests on."""
    log = known((facts(snapshot.machine.kernel) or Kernel()).log) or []
    lines = [fact.value for fact in one.evidence if fact.fact == "machine.kernel.log"]
    events = [event for event in log if any(event.text in line for line in lines)]
    seconds = max((known(event.seconds) or 0.0 for event in events), default=0.0)
    if not seconds:
        return ""
    count = sum(event.count for event in events)
    return f"{count} times, last " * (count > 1) + f"{duration(seconds)} after boot"
