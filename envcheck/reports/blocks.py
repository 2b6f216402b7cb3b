"""What is wrong, a block each: what, where, the evidence, what follows from it, and what to do."""

from __future__ import annotations

from ..findings.model import Outcome
from .model import Report
from .page import Page
from .plain import Group, code_ranges, evidence_text, gaps, gist, grouped, roots
from .results import ReportedResult

# Of more than these, a failure's consequences are named by code, and the others are counted.
CONSEQUENCES = 6
EVIDENCE_LINES = 12
SUBJECTS = 16
GROUPS = 8

_SECTIONS: tuple[Outcome, ...] = ("fail", "warn", "could-not-run", "skipped")


def blocks(page: Page, report: Report, verbose: bool) -> None:
    """All that is not well, worst first; a consequence stands with the failure it follows from.

    A consequence whose failure is not in the report stands for itself, so that nothing is lost.
    """
    causes = roots(report.results)
    following = [causes[code] for code in causes]
    for section in _SECTIONS:
        alike: dict[str, list[ReportedResult]] = {}
        of_section = [
            result
            for result in report.results
            if result.outcome == section and (section != "skipped" or causes.get(result.code) == "")
        ]
        for result in sorted(of_section, key=lambda result: -following.count(result.code)):
            if section == "could-not-run" and not result.findings:
                alike.setdefault(result.reason, []).append(result)
                continue
            page.blank()
            consequences = [r for r in report.results if causes.get(r.code) == result.code]
            _block(page, result, consequences, verbose)
        for reason, results in alike.items():
            page.blank()
            _mute(page, reason, results)


def _mute(page: Page, reason: str, results: list[ReportedResult]) -> None:
    """Checks that could not run for one and the same reason: a probe that failed silences many."""
    told = f'"{results[0].title}": {reason}' if len(results) == 1 else reason
    _opening(page, "could-not-run", code_ranges(result.code for result in results), told)


def _block(
    page: Page, result: ReportedResult, consequences: list[ReportedResult], verbose: bool
) -> None:
    groups = grouped(result.findings)
    if result.outcome in ("could-not-run", "skipped") or not groups:
        _opening(page, result.outcome, result.code, f'"{result.title}": {result.reason}')
    for group in groups[:GROUPS]:
        _opening(page, group.level, result.code, group.message)
        _where(page, group, verbose)
        _evidence(page, group, verbose)
        if group is groups[0]:
            _rest(page, result, consequences, verbose)
        if group.remedy is not None:
            page.remedy(group.remedy)
    if (left := len(groups) - GROUPS) > 0:
        _opening(page, result.outcome, result.code, f"and {left} more in --format json")
    if not groups:
        _rest(page, result, consequences, verbose)


def _opening(page: Page, outcome: Outcome, code: str, message: str) -> None:
    word = page.word(outcome)
    if outcome == "could-not-run" and page.signs:
        message = f"could not run: {message}"
    page.paragraph((word, outcome), (code, "code"), (message, ""), hanging=2)


def _where(page: Page, group: Group, verbose: bool) -> None:
    where = group.unmentioned
    if not where:
        return
    more = [f"and {len(where) - SUBJECTS} more"] if len(where) > SUBJECTS else []
    told = "; ".join(where[:SUBJECTS] + more)
    if not verbose:
        told = page.cut(page.clean(told), page.width - 2)
    page.paragraph((told, ""), indent=2, hanging=4)


def _evidence(page: Page, group: Group, verbose: bool) -> None:
    """The facts: in two lines of the page, or each with its path and its source."""
    if not verbose:
        facts = dict.fromkeys(
            f"{one.fact.rpartition('.')[2]} = {one.value}" for one in group.evidence
        )
        told = page.cut(page.clean("; ".join(facts)), 2 * (page.width - 8))
        if told:
            page.paragraph((told, "quiet"), indent=4, hanging=4)
        return
    for evidence in group.evidence[:EVIDENCE_LINES]:
        page.paragraph((evidence_text(evidence), "quiet"), indent=4, hanging=6)
    if (left := len(group.evidence) - EVIDENCE_LINES) > 0:
        page.paragraph((f"and {left} more in --format json", "quiet"), indent=4, hanging=6)


def _rest(
    page: Page, result: ReportedResult, consequences: list[ReportedResult], verbose: bool
) -> None:
    """What could not be looked at beside the findings, and what follows from them."""
    for gap in gaps(result) if result.outcome == "fail" else []:
        page.paragraph(("could not look:", ""), (gap, ""), indent=2, hanging=4)
    told = [other for other in consequences if other.findings][:CONSEQUENCES] if verbose else []
    for other in told:
        page.paragraph(
            ("→ also:", ""), (other.code, "code"), (gist(other), ""), indent=2, hanging=4
        )
    if rest := code_ranges(other.code for other in consequences if other not in told):
        told_rest = f"→ consequences: {rest}"
        if not verbose:
            told_rest = page.cut(page.clean(told_rest), page.width - 2)
        page.paragraph((told_rest, ""), indent=2, hanging=4)
