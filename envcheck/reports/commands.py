"""The remedies' commands alone, each under a comment that says what for: to be read, then run by a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from ..facts.snapshot import Snapshot
from .headlines import Headline, headlines
from .model import Report
from .page import TOKEN, Page, unchanged
from .plain import grouped, worst_first


class NextStep(msgspec.Struct, frozen=True):
    """What is to be done about one finding."""

    code: str
    headline: str
    text: str
    commands: list[str]


def render(
    report: Report,
    snapshot: Snapshot,
    *,
    restore: Callable[[str], str] = unchanged,
    in_place: Callable[[str], str] = unchanged,
    elsewhere: bool = False,
    utf8: bool = True,
) -> str:
    """A shell script. A command that holds a redaction token instead of its value is a comment."""
    page = Page(width=80, utf8=utf8, restore=restore, in_place=in_place)
    page.away = elsewhere or report.machine.origin == "nvidia-smi"
    if report.simulated:
        _comment(page, f"Simulated, not real: {report.simulated}")
    _comment(page, report.verdict)
    found = list(steps(report, snapshot))
    if not found:
        _comment(page, "Nothing to do.")
    for step in found:
        page.blank()
        _comment(page, f"{step.code} {step.headline}")
        if step.text:
            _comment(page, step.text)
        for command in step.commands:
            if TOKEN.search(restore(command)):
                _comment(page, f"put in what is behind the token, then run: {command}")
            else:
                page.command(command)
    return page.text()


def steps(report: Report, snapshot: Snapshot) -> Iterator[NextStep]:
    """Worst first; findings without a command are left out."""
    phrases: dict[str, list[Headline]] = {}
    for one in headlines(report.results, snapshot):
        phrases.setdefault(one.code, []).append(one)
    for result in worst_first(report.results):
        for group in grouped(result.findings):
            if group.remedy is not None and group.remedy.commands:
                named = "; ".join(
                    one.text for one in phrases.get(result.code, []) if one.level == group.level
                )
                yield NextStep(
                    result.code, named or result.title, group.remedy.text, group.remedy.commands
                )


def _comment(page: Page, text: str) -> None:
    page.line((f"# {page.clean(text)}", ""))
