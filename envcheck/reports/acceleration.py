"""The report's section on acceleration systems, memory and links: a line a system, with its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..checks.acceleration.common import Seen, told
from ..checks.registry import all_checks
from ..facts.snapshot import Snapshot
from ..findings.model import DEEPER, Outcome
from .model import Report, was_left_out
from .results import ReportedFinding, ReportedResult

if TYPE_CHECKING:
    from .page import Page, Span

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
_STATE_CELLS = 13
_TITLE_CELLS = 20  # tests hold titles to it
_MANY = 6  # systems that are not applicable: more of them share a line, and -v names them
_RAGGED = 12  # cells that a word which does not fit may leave at the end of a line
_WIDE = 72  # cells of a page that has room for a column of titles


def section(page: Page, report: Report, snapshot: Snapshot, verbose: bool = True) -> None:
    """The whole section with a blank line before it; nothing where no system was asked for.

    What is not applicable, and what follows from a failure elsewhere, shares lines by its reasons. The
    target's framework is not named again where it has but one. ``verbose``: what each run left behind, too.
    """
    results = asked(report)
    if not results:
        return
    page.blank()
    page.paragraph(("Acceleration:", "heading"), (summary(results), ""), hanging=2)
    framework = _only_framework(snapshot)
    alike: dict[tuple[str, str], list[str]] = {}
    cells = max((len(one.title) for one in results if one.outcome != "skipped"), default=0)
    for result in results:
        if result.outcome == "skipped":
            reason = why(result).replace(framework, "")
            alike.setdefault((state(result), reason), []).append(result.title)
            continue
        text = page.clean(why(result).replace(framework, ""))
        _row(page, result, text, min(cells, _TITLE_CELLS), verbose)
        for line in _evidence(snapshot, result) if verbose else ():
            page.paragraph((page.clean(line), "quiet"), indent=6, hanging=8)
    unused = [one for one in alike if one[0] == _NOT_APPLICABLE]
    many = sum(len(alike[one]) for one in unused)
    if many > _MANY and not verbose:
        reasons = "; ".join(dict.fromkeys(reason for _word, reason in unused if reason))
        lead = f"{_NOT_APPLICABLE}:"
        text = page.cut(page.clean(f"{many} systems ({reasons})"), page.width - len(lead) - 3)
        page.paragraph((lead, "skipped"), (text, ""), indent=2, hanging=4)
        alike = {one: titles for one, titles in alike.items() if one not in unused}
    for (word, reason), titles in alike.items():
        spans = [(f"{word}:", "skipped"), (", ".join(titles), "")]
        spans += [(f"({page.clean(reason)})", "quiet")] if reason else []
        page.paragraph(*spans, indent=2, hanging=4)


def _row(page: Page, result: ReportedResult, text: str, cells: int, verbose: bool) -> None:
    """``verbose``: with all that is said of it; else a pass is cut to a line, or to two as all else."""
    from .page import Column

    word = state(result)
    wide = page.width >= _WIDE
    if not verbose and not result.findings:
        room = page.width - _STATE_CELLS - (cells + 6 if wide else len(result.title) + 5)
        text = page.cut(text, room if wide and result.outcome == "pass" else 2 * room - _RAGGED)
    if not wide:
        first = f"  {word.ljust(_STATE_CELLS)}"
        page.hanging((first, result.outcome), (f"{result.title}:", ""), (text, ""))
        return
    row: list[Span] = [(word, result.outcome), (result.title, ""), (text, "")]
    columns = [Column(width=_STATE_CELLS), Column(width=cells), Column(wraps=True)]
    page.table(columns, [row], indent=2, gap=2)


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


def summary(results: Iterable[ReportedResult]) -> str:
    """How many are in which state."""
    numbers = Counter(map(state, results))
    return ", ".join(f"{numbers[word]} {word}" for word in _ORDER if numbers[word])


def why(result: ReportedResult) -> str:
    """What is said of it beside its state."""
    if result.outcome == "pass":
        return result.detail
    if result.consequence_of:
        return f"because of {result.consequence_of}"
    if result.findings:
        return "; ".join(dict.fromkeys(map(_first_sentence, result.findings)))
    return result.reason.replace(f"{_NOT_APPLICABLE}: ", "")


def _only_framework(snapshot: Snapshot) -> str:
    """What results begin with where the systems ran in one framework alone: "TensorFlow 2.15.1: "."""
    probe = None if snapshot.target is None else snapshot.target.acceleration
    runs = probe.facts.runs if probe is not None and probe.facts is not None else []
    titles = {Seen(run, "").title for run in runs} - {""}
    return f"{titles.pop()}: " if len(titles) == 1 else ""


def _first_sentence(finding: ReportedFinding) -> str:
    """Its headline, which names no framework, with the one that it is about."""
    text = finding.headline or finding.message
    names = [one.name for one in finding.subjects if one.kind == "framework"]
    missing = [name for name in names if name not in text]
    return f"{text} ({', '.join(missing)})" if missing else text


def states(report: Report) -> Iterator[tuple[str, list[str]]]:
    """The titles of systems by their states, for who has a line for all of them."""
    found = asked(report)
    for word in _ORDER:
        titles = [result.title for result in found if state(result) == word]
        if titles:
            yield word, titles


def _evidence(snapshot: Snapshot, result: ReportedResult) -> Iterator[str]:
    """What each run of the systems that a check judges left behind."""
    systems = next((one.systems for one in all_checks() if one.code == result.code), ())
    runs = [
        run
        for document in (snapshot.machine, snapshot.target)
        if document is not None and (probe := document.acceleration) is not None
        for run in (probe.facts.runs if probe.facts is not None else ())
        if run.system in systems
    ]
    for run in runs:
        gpus = ", ".join(run.gpus) if len(run.gpus) == 1 else ""
        title = Seen(run, "").title or gpus or run.system
        for trial in run.trials:
            yield f"{title}: {told(trial)}" if len(runs) > 1 else told(trial)
