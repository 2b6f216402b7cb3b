"""The report for people: the verdict; the machine; what is wrong, with evidence and commands to paste;
Tensor Cores; areas; what to do next.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from ..facts.snapshot import Snapshot
from .acceleration import section as acceleration
from .areas import area_lines, skipped_lines, status_lines
from .blocks import blocks
from .headlines import headlines
from .machine import short
from .model import Report, verdict
from .page import Page, unchanged
from .plain import worst_first
from .tensorcores import section as tensor_cores
from .verdict import OverallVerdict

_DOCTOR = "envcheck doctor"

_HANGING = 2


def render(
    report: Report,
    snapshot: Snapshot,
    *,
    width: int = 80,
    colour: bool = False,
    utf8: bool = True,
    restore: Callable[[str], str] = unchanged,
    in_place: Callable[[str], str] = unchanged,
    elsewhere: bool = False,
    implied: bool = False,
    verbose: bool = False,
) -> str:
    """The report as text for a terminal of that many columns, or for a pipe.

    ``restore`` puts back the real values that redaction tokens stand for; ``in_place`` makes of a command
    of envcheck's own one that works here. ``elsewhere``: the Snapshot is of another machine than the
    reader's, for all that is known. ``implied``: the target was not named by the user. ``verbose``: all
    evidence, an area a line with its facts, and what was skipped. Commands are printed from the first
    column, on lines of their own, and are never wrapped.
    """
    page = Page(width=width, colour=colour, utf8=utf8, restore=restore, in_place=in_place)
    page.away = elsewhere or report.machine.origin == "nvidia-smi"
    draw(page, report, snapshot, implied=implied, verbose=verbose)
    return page.text()


def draw(
    page: Page, report: Report, snapshot: Snapshot, *, implied: bool = False, verbose: bool = False
) -> None:
    """Put the report on a page."""
    page.simulated(report.simulated)
    _verdict(page, verdict(report, snapshot))
    _heading(page, report, verbose)
    blocks(page, report, verbose)
    tensor_cores(page, report, snapshot, verbose)
    acceleration(page, report, snapshot, verbose)
    page.blank()
    (area_lines if verbose else status_lines)(page, report, snapshot)
    if verbose:
        skipped_lines(page, report)
    _ending(page, report, implied, verbose)


def brief(report: Report, snapshot: Snapshot, **style: Any) -> str:
    """The verdict alone; where it counts several problems or warnings, these too, a line each."""
    page = Page(**style)
    page.simulated(report.simulated)
    found = verdict(report, snapshot)
    _verdict(page, found)
    if len(found.items) > 1 and found.sign in ("fail", "warn"):
        for one in headlines(report.results, snapshot):
            if one.text in found.items:
                word = page.word(one.level)
                page.paragraph((word, one.level), (one.code, "code"), (one.text, ""), hanging=2)
    return page.text()


def _verdict(page: Page, found: OverallVerdict) -> None:
    """As many items as fit on two lines; the first stands there in any case."""
    items = [page.cut(page.clean(item), 2 * page.width) for item in found.items]
    lead = page.clean(found.lead if page.utf8 else found.word)
    sign = f"{page.sign(found.sign)} " if page.utf8 else ""
    room = 2 * page.width - _HANGING - max(map(len, "; ".join(items).split(" ")))

    def line(named: list[str]) -> str:
        return sign + ": ".join(filter(None, (lead, "; ".join(named))))

    whole = line(items)
    counted = range(len(items) - 1, 0, -1)
    fewer = (line([*items[:number], f"{len(items) - number} more"]) for number in counted)
    told = next((text for text in (whole, *fewer) if page.fits(text, room)), line(items[:1]))
    page.paragraph((told, found.sign if found.sign != "skipped" else "warn"), hanging=_HANGING)


def _heading(page: Page, report: Report, verbose: bool) -> None:
    machine = report.machine
    told = (machine.summary if verbose else short(machine)) or "nothing is known of it"
    if machine.hostname:
        told = f"{machine.hostname}, {told}"
    if machine.origin == "nvidia-smi":
        told += " (from a saved nvidia-smi output alone)"
    page.paragraph(("Machine:", "heading"), (told, ""), hanging=2)
    if report.target is not None:
        page.paragraph(("Target:", "heading"), (report.target.summary, ""), hanging=2)
    if verbose:
        told = f"{report.envcheck}, facts of {machine.collected_at}"
        page.paragraph(("envcheck:", "heading"), (told, ""), hanging=2)


def _ending(page: Page, report: Report, implied: bool, verbose: bool) -> None:
    failed = any(result.outcome == "fail" for result in report.results)
    root = report.root if verbose or not failed else ""
    told, command = _next(report, page, implied)
    if root or command or page.tokens:
        page.blank()
    if root:
        page.paragraph((root, ""), hanging=2)
    if command:
        there = page.away and command.startswith(_DOCTOR)
        where = ", on that machine:" if there else ":"
        page.paragraph((f"{told}{where}", ""), hanging=2)
        page.command(command, here=not there)
    if page.tokens:
        page.paragraph((page.about_tokens(), ""), hanging=2)


def _next(report: Report, page: Page, implied: bool) -> tuple[str, str]:
    """The next thing to do, and what to type for it."""
    first: dict[str, str] = {}
    for result in report.results:
        first.setdefault(result.outcome, result.code)
    doctor = _DOCTOR
    if report.machine.origin == "nvidia-smi":
        return "To check the rest", doctor
    if report.target is not None:
        kind, _, place = report.target.location.partition(":")
        place = place if kind == "path" else report.target.location
        if not (implied and kind == "image"):
            doctor += f" --target {shlex.quote(page.restore(place))}"
    if "fail" in first:
        return f"Fix {_first_failure(report)} first, then run again", doctor
    for outcome in ("could-not-run", "warn"):
        if outcome in first:
            return f"What {first[outcome]} means", f"envcheck explain {first[outcome]}"
    if report.target is None and not report.counts.left_out:
        return "To check a Python environment, too", f"{doctor} --target PATH"
    return "", ""


def _first_failure(report: Report) -> str:
    failed = [result.code for result in report.results if result.outcome == "fail"]
    return next((r.code for r in worst_first(report.results) if r.code in failed), failed[0])
