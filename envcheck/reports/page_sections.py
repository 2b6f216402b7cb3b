"""Sections of reports as sections of an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..facts.base import known
from ..facts.kernel import Kernel
from ..facts.snapshot import Snapshot
from ..findings.model import Outcome
from .bench_progress import duration
from .evidence_words import evidence_lines
from .headlines import gpu_indices
from .html import PageSection
from .machine import facts
from .plain import WORDS, code_ranges
from .results import ReportedResult
from .sections import ReportedProblem, ReportSection, problems

OUTCOME_WORDS = {**WORDS, "skipped": "skipped"}
_EVIDENCE, _PROBLEMS = 24, 60


class ProblemRow(NamedTuple):
    """A row of the table that a page begins with. machines: their names, folded. when: since when, or when
    last, "" where that is not known. in_place: what the machines have in common. more: below "What to do"."""

    outcome: Outcome
    word: str
    code: str
    what: str
    where: str = ""
    when: str = ""
    to_do: str = ""
    code_link: str = ""
    machines: str = ""
    machine_link: str = ""
    in_place: str = ""
    more: Sequence[str] = ()
    commands: Sequence[str] = ()


def page_section(one: ReportSection) -> PageSection:
    data = {"summary": one.summary, "blocks": one.blocks}
    return PageSection(one.id, one.title, "section.html", data, one.count)


def problem_table(rows: Sequence[ProblemRow], title: str) -> PageSection:
    return PageSection("problems", title, "problems.html", {"rows": rows}, str(len(rows)))


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
    yield problem_table([_row(one, snapshot) for one in found[:_PROBLEMS]], title)
    data = {
        "problems": [
            (
                one,
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
    yield PageSection("details", "Evidence and what to do", "details.html", data)


def _row(one: ReportedProblem, snapshot: Snapshot) -> ProblemRow:
    others = one.where[:1] if len(one.where) == 1 else [f"{len(one.where)} places"]
    what = one.headline.removeprefix(one.devices).strip() or one.message
    return ProblemRow(
        outcome=one.outcome,
        word=OUTCOME_WORDS[one.outcome],
        code=one.code,
        what=what,
        where=one.devices or ("".join(others) if one.where else ""),
        when=_when(one, snapshot),
        to_do=one.remedy.text if one.remedy else "",
        code_link=f"#{one.id}",
    )


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
