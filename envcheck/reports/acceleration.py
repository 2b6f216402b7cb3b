"""The report's section on acceleration systems, memory and links: a line a system, with its state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..checks.acceleration.common import Seen, told
from ..checks.registry import all_checks
from ..facts.snapshot import Snapshot
from ..findings.model import DEEPER, CheckResult, Outcome
from .model import Report, was_left_out

if TYPE_CHECKING:
    from .page import Page, Span

AREAS = ("memory", "acceleration")
_STATES: dict[Outcome, str] = {
    "pass": "engaged",
    "warn": "in doubt",
    "fail": "not engaged",
    "could-not-run": "could not run",
    "skipped": "not applicable",
}
_OF_MEMORY: dict[Outcome, str] = {"pass": "as it must be", "warn": "slow", "fail": "wrong"}
_NOT_APPLICABLE = "not applicable: "


def section(page: Page, report: Report, snapshot: Snapshot, verbose: bool = True) -> None:
    """The whole section with a blank line before it; nothing where no system was asked for.

    What is not applicable shares lines by its reasons. ``verbose``: what each run left behind, too.
    """
    asked = [
        result
        for result in report.results
        if result.area in AREAS and result.reason != DEEPER and not was_left_out(result)
    ]
    if not asked:
        return
    page.blank()
    page.paragraph(("Acceleration:", "heading"), (_summary(asked), ""), hanging=2)
    from .page import Column

    silent: dict[str, list[str]] = {}
    for result in asked:
        if result.outcome == "skipped":
            silent.setdefault(_why(result), []).append(result.title)
            continue
        row: list[Span] = [
            (state(result), result.outcome),
            (result.title, ""),
            (page.clean(_why(result)), ""),
        ]
        page.table([Column(width=13), Column(width=20), Column(wraps=True)], [row], indent=2)
        for line in _evidence(snapshot, result) if verbose else ():
            page.paragraph((page.clean(line), "quiet"), indent=6, hanging=8)
    for why, titles in silent.items():
        told_ = (f"{_STATES['skipped']}:", "skipped")
        page.paragraph(
            told_, (", ".join(titles), ""), (f"({page.clean(why)})", "quiet"), indent=2, hanging=4
        )


def state(result: CheckResult) -> str:
    """ "engaged", "not engaged", "could not run", "not applicable"; of memory and links other words."""
    words = _OF_MEMORY if result.area == "memory" else {}
    return words.get(result.outcome, _STATES[result.outcome])


def _summary(asked: list[CheckResult]) -> str:
    numbers: dict[str, int] = {}
    for result in asked:
        numbers[state(result)] = numbers.get(state(result), 0) + 1
    return ", ".join(f"{number} {word}" for word, number in numbers.items())


def _why(result: CheckResult) -> str:
    if result.outcome == "pass":
        return result.detail
    if result.findings:
        return "; ".join(dict.fromkeys(one.headline or one.message for one in result.findings))
    return result.reason.removeprefix(_NOT_APPLICABLE)


def _evidence(snapshot: Snapshot, result: CheckResult) -> Iterator[str]:
    """What each run of the systems that a check judges left behind."""
    systems = next((one.systems for one in all_checks() if one.code == result.code), ())
    for document in (snapshot.machine, snapshot.target):
        probe = None if document is None else document.acceleration
        for run in probe.facts.runs if probe is not None and probe.facts is not None else ():
            if run.system in systems:
                seen = Seen(run, "")
                for trial in run.trials:
                    yield f"{seen.title or run.system}: {told(trial)}"
