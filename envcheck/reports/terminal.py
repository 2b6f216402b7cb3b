"""The report for people: failures first, with evidence and commands to paste; Tensor Cores; areas; a
verdict.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from ..checks.model import CheckResult, Diagnosis, Outcome
from ..snapshot import Snapshot
from .areas import area_lines
from .model import Report, worst
from .page import Page, unchanged
from .plain import WORDS, Group, code_ranges, evidence_text, gaps, gist, grouped, roots, unmentioned
from .tensorcores import section as tensor_cores

# Of more than these, a failure's consequences are named by code, and the others are counted.
CONSEQUENCES = 6
EVIDENCE_LINES = 12
SUBJECTS = 16
GROUPS = 8

_DOCTOR = "envcheck doctor"

SIMULATED = "Simulated, not real:"

_SECTIONS: tuple[Outcome, ...] = ("fail", "warn", "could-not-run", "skipped")


def render(
    report: Report,
    snapshot: Snapshot,
    *,
    width: int = 80,
    colour: bool = False,
    utf8: bool = True,
    restore: Callable[[str], str] = unchanged,
    elsewhere: bool = False,
    implied: bool = False,
) -> str:
    """The report as text for a terminal of that many columns, or for a pipe.

    ``restore`` puts back the real values that redaction tokens stand for. ``elsewhere``: the Snapshot
    is of another machine than the reader's, for all that is known. Commands are printed from the first
    column, on lines of their own, and are never wrapped.
    """
    page = Page(width=width, colour=colour, utf8=utf8, restore=restore)
    if report.simulated:
        page.paragraph((SIMULATED, "heading"), (report.simulated, ""), hanging=2)
    _heading(page, report)
    _blocks(page, report)
    tensor_cores(page, report, snapshot)
    page.blank()
    area_lines(page, report, snapshot)
    page.blank()
    _verdict(page, report, elsewhere, implied)
    return page.text()


def _heading(page: Page, report: Report) -> None:
    machine = report.machine
    where = f" on {machine.hostname}" if machine.hostname else ""
    told = machine.summary or "a machine of which nothing is known"
    if machine.origin == "nvidia-smi":
        told += " (from a saved nvidia-smi output alone)"
    page.paragraph((f"envcheck {report.envcheck}{where}:", "heading"), (told, ""), hanging=2)
    if report.target is not None:
        page.paragraph(("Target:", "heading"), (report.target.summary, ""), hanging=2)


def _blocks(page: Page, report: Report) -> None:
    """All that is not well, worst first; a consequence stands with the failure it follows from.

    A consequence whose failure is not in the report stands for itself, so that nothing is lost.
    """
    causes = roots(report.results)
    for section in _SECTIONS:
        alike: dict[str, list[CheckResult]] = {}
        for result in report.results:
            if result.outcome != section or (
                section == "skipped" and causes.get(result.code) != ""
            ):
                continue
            if section == "could-not-run" and not result.findings:
                alike.setdefault(result.reason, []).append(result)
                continue
            page.blank()
            _block(page, result, [r for r in report.results if causes.get(r.code) == result.code])
        for reason, results in alike.items():
            page.blank()
            _mute(page, reason, results)


def _mute(page: Page, reason: str, results: list[CheckResult]) -> None:
    """Checks that could not run for one and the same reason: a probe that failed silences many."""
    told = f'"{results[0].title}": {reason}' if len(results) == 1 else reason
    _opening(page, "could-not-run", code_ranges(result.code for result in results), told)


def _block(page: Page, result: CheckResult, consequences: list[CheckResult]) -> None:
    groups = grouped(result.findings)
    if result.outcome in ("could-not-run", "skipped") or not groups:
        _opening(page, result.outcome, result.code, f'"{result.title}": {result.reason}')
    for group in groups[:GROUPS]:
        _opening(page, group.level, result.code, group.message)
        _group(page, group)
        if group is groups[0]:
            _rest(page, result, consequences)
        _remedy(page, group)
    if (left := len(groups) - GROUPS) > 0:
        _opening(page, result.outcome, result.code, f"and {left} more in --format json")
    if not groups:
        _rest(page, result, consequences)


def _opening(page: Page, outcome: Outcome, code: str, message: str) -> None:
    page.paragraph((WORDS[outcome], outcome), (code, "code"), (message, ""), hanging=2)


def _group(page: Page, group: Group) -> None:
    if where := unmentioned(group):
        more = [f"and {len(where) - SUBJECTS} more"] if len(where) > SUBJECTS else []
        page.paragraph(("; ".join(where[:SUBJECTS] + more), ""), indent=2, hanging=4)
    for evidence in group.evidence[:EVIDENCE_LINES]:
        page.paragraph((evidence_text(evidence), "quiet"), indent=4, hanging=6)
    if (left := len(group.evidence) - EVIDENCE_LINES) > 0:
        page.paragraph((f"and {left} more in --format json", "quiet"), indent=4, hanging=6)


def _rest(page: Page, result: CheckResult, consequences: list[CheckResult]) -> None:
    """What could not be looked at beside the findings, and what follows from them."""
    for gap in gaps(result) if result.outcome == "fail" else []:
        page.paragraph(("could not look:", ""), (gap, ""), indent=2, hanging=4)
    told = [other for other in consequences if other.findings][:CONSEQUENCES]
    for other in told:
        page.paragraph(
            ("→ also:", ""), (other.code, "code"), (gist(other), ""), indent=2, hanging=4
        )
    if rest := code_ranges(other.code for other in consequences if other not in told):
        page.paragraph((f"→ and what rests on it: {rest}", ""), indent=2, hanging=4)


def _remedy(page: Page, group: Group) -> None:
    if group.remedy is None:
        return
    page.paragraph(("To do:", "heading"), (group.remedy.text, ""), indent=2, hanging=4)
    for command in group.remedy.commands:
        page.command(command)


def _verdict(page: Page, report: Report, elsewhere: bool, implied: bool) -> None:
    outcome = worst(Diagnosis(report.results))
    page.paragraph((report.verdict, "warn" if outcome == "skipped" else outcome), hanging=2)
    if report.root:
        page.paragraph((report.root, ""), hanging=2)
    told, command = _next(report, page.restore, implied)
    if command:
        there = elsewhere or report.machine.origin == "nvidia-smi"
        where = ", on that machine:" if there and command.startswith(_DOCTOR) else ":"
        page.paragraph((f"{told}{where}", ""), hanging=2)
        page.command(command)
    if page.tokens:
        verb = "stands for a value" if len(page.tokens) == 1 else "stand for values"
        page.paragraph(
            (
                f"In the commands, {', '.join(page.tokens)} {verb} that the Snapshot keeps to itself:"
                " put in the real one before you paste.",
                "",
            ),
            hanging=2,
        )


def _next(report: Report, restore: Callable[[str], str], implied: bool) -> tuple[str, str]:
    """The next thing to do, and what to type for it."""
    first: dict[str, str] = {}
    for result in report.results:
        first.setdefault(result.outcome, result.code)
    doctor = _DOCTOR
    if report.machine.origin == "nvidia-smi":
        return "For the rest of it", doctor
    if report.target is not None:
        kind, _, place = report.target.location.partition(":")
        place = place if kind == "path" else report.target.location
        if not (implied and kind == "image"):
            doctor += f" --target {shlex.quote(restore(place))}"
    if "fail" in first:
        return f"Next: see to {first['fail']} first, then look again", doctor
    for outcome in ("could-not-run", "warn"):
        if outcome in first:
            return f"Next: what {first[outcome]} means", f"envcheck explain {first[outcome]}"
    if report.target is None and not report.counts.left_out:
        return "Next: look at a Python environment, too", f"{doctor} --target PATH"
    return "", ""
