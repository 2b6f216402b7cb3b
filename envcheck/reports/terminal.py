"""The report for people: the verdict; the machine; what is wrong, with evidence and commands to paste;
Tensor Cores; areas; what to do next.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ..facts.snapshot import Snapshot
from . import acceleration, areas, tensorcores
from .headlines import headlines
from .machine import MachineDescription, TargetDescription, short
from .model import Report, verdict
from .page import Page
from .plain import WORDS, Column, code_ranges, evidence_text, gist, worst_first
from .sections import Advice, Heading, Note, ReportedProblem, ReportSection, Span, Table, problems
from .verdict import OverallVerdict

CONSEQUENCES, EVIDENCE, SUBJECTS = 6, 12, 16  # shown of a problem
_REPEATED = 4  # commands in a row that are not printed twice
_DOCTOR = "envcheck doctor"
_GAP = 2  # cells between the columns of a table
_NARROW = 72  # a page with fewer cells has no room for a column of text beside others


def render(
    report: Report,
    snapshot: Snapshot,
    *,
    elsewhere: bool = False,
    implied: bool = False,
    verbose: bool = False,
    **style: Any,
) -> str:
    """The report as text; ``style``: of Page. ``elsewhere``: the Snapshot is of another machine than the
    reader's. ``implied``: the target was not named by the user. ``verbose``: all evidence, all areas with
    their facts, and what was skipped."""
    page = Page(**style)
    page.away = elsewhere or report.machine.origin == "nvidia-smi"
    page.simulated(report.simulated)
    _verdict(page, verdict(report, snapshot))
    machine(page, report.machine, report.target, verbose)
    if verbose:
        text = f"{report.envcheck}, facts of {report.machine.collected_at}"
        page.paragraph(("envcheck:", "heading"), (text, ""), hanging=2)
    for result in report.results:
        if result.note and (verbose or report.status == "healthy"):
            page.paragraph(
                ("Note:", "heading"), (result.note, ""), (f"({result.code})", "quiet"), hanging=2
            )
    above: list[ReportedProblem] = []
    for one in problems(report.results):
        problem(page, one if verbose else _without_repeats(one, above), verbose)
        above.append(one)
    for of in (tensorcores.section, acceleration.section):
        if (section := of(report, snapshot, verbose)) is not None:
            draw(page, section)
    page.blank()
    _areas(page, report, snapshot, verbose)
    _ending(page, report, implied, verbose)
    return page.text()


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


def draw(page: Page, section: ReportSection) -> None:
    """A section with a blank line before it."""
    page.blank()
    colon = ":" if section.summary else ""
    page.paragraph((section.title + colon, "heading"), (section.summary, ""), hanging=2)
    for block in section.blocks:
        match block:
            case Heading(spans):
                page.blank()
                page.paragraph(*spans, hanging=2)
            case Note(spans, indent):
                page.paragraph(*spans, indent=2 * indent, hanging=2 * indent + 2)
            case Table() if page.width < _NARROW and any(one.wraps for one in block.columns):
                for first, *row in block.rows:
                    page.paragraph(first, *row, indent=2, hanging=4)
            case Table(columns, rows):
                shown = _fitting(page, columns, rows)
                cells = [[row[n] for n in shown] for row in rows]
                page.table([columns[n] for n in shown], cells, indent=2, gap=_GAP, headings="quiet")
            case Advice(text, commands, here):
                page.advice(text, commands, here=here)


def _fitting(page: Page, columns: Sequence[Column], rows: Sequence[Sequence[Span]]) -> list[int]:
    """The places of the columns that fit; those of the highest rank are omitted first."""
    texts = [[columns[n].heading, *(row[n][0] for row in rows)] for n in range(len(columns))]
    widths = [max(len(page.clean(text)) for text in column) + _GAP for column in texts]
    shown = list(range(len(columns)))
    for place in sorted(shown, key=lambda place: -columns[place].rank):
        if columns[place].rank and sum(widths[one] for one in shown) + 2 - _GAP > page.columns:
            shown.remove(place)
    return shown


def _verdict(page: Page, found: OverallVerdict) -> None:
    """As many items as fit on two lines; the first stands there in any case."""
    items = [page.cut(page.clean(item), 2 * page.width) for item in found.items]
    lead = page.clean(found.lead)
    sign = f"{page.sign(found.sign) if page.utf8 else WORDS[found.sign]} "
    room = 2 * page.width - 2 - max(map(len, "; ".join(items).split(" ")))

    def line(named: list[str]) -> str:
        return sign + ": ".join(filter(None, (lead, "; ".join(named))))

    whole = line(items)
    counted = range(len(items) - 1, 0, -1)
    fewer = (line([*items[:number], f"{len(items) - number} more"]) for number in counted)
    text = next((text for text in (whole, *fewer) if page.fits(text, room)), line(items[:1]))
    page.paragraph((text, found.sign if found.sign != "skipped" else "warn"), hanging=2)


def machine(
    page: Page, about: MachineDescription, target: TargetDescription | None, verbose: bool
) -> None:
    text = (about.summary if verbose else short(about)) or "nothing is known of it"
    text = f"{about.hostname}, {text}" if about.hostname else text
    if about.origin == "nvidia-smi":
        text += " (from a saved nvidia-smi output alone)"
    page.paragraph(("Machine:", "heading"), (text, ""), hanging=2)
    if target is not None:
        page.paragraph(("Target:", "heading"), (target.summary, ""), hanging=2)


def problem(page: Page, one: ReportedProblem, verbose: bool) -> None:
    """What, where, the evidence, what follows from it, and what to do."""
    page.blank()
    unable = "could not run: " if one.outcome == "could-not-run" and page.signs else ""
    opening = (page.word(one.outcome), one.outcome), (one.code, "code")
    page.paragraph(*opening, (unable + one.message, ""), hanging=2)
    more = [f"and {len(one.where) - SUBJECTS} more"] if len(one.where) > SUBJECTS else []
    if where := "; ".join(one.where[:SUBJECTS] + more):
        _line(page, where, verbose)
    if verbose:
        for evidence in one.evidence[:EVIDENCE]:
            page.paragraph((evidence_text(evidence), "quiet"), indent=4, hanging=6)
        if (rest := len(one.evidence) - EVIDENCE) > 0:
            page.paragraph((f"and {rest} more in --format json", "quiet"), indent=4, hanging=6)
    elif one.evidence:
        values = (f"{fact.fact.rpartition('.')[2]} = {fact.value}" for fact in one.evidence)
        text = page.cut(page.clean("; ".join(dict.fromkeys(values))), 2 * (page.width - 8))
        page.paragraph((text, "quiet"), indent=4, hanging=4)
    for gap in one.gaps:
        page.paragraph(("could not look:", ""), (gap, ""), indent=2, hanging=4)
    named = [other for other in one.follows if other.findings][:CONSEQUENCES] if verbose else []
    for other in named:
        also = ("→ also:", ""), (other.code, "code"), (gist(other), "")
        page.paragraph(*also, indent=2, hanging=4)
    if codes := code_ranges(other.code for other in one.follows if other not in named):
        _line(page, f"→ consequences: {codes}", verbose)
    if one.remedy is not None:
        page.advice(one.remedy.text, one.remedy.commands)


def _without_repeats(one: ReportedProblem, above: Sequence[ReportedProblem]) -> ReportedProblem:
    """The problem; commands that stand in the same order under one above are named and not printed again."""
    if one.remedy is None:
        return one
    ours = one.remedy.commands
    longest = range(len(ours), _REPEATED - 1, -1)
    runs = ((place, place + size) for size in longest for place in range(len(ours) - size + 1))
    for start, end in runs:
        for other in above:
            theirs = other.remedy.commands if other.remedy else []
            if any(theirs[n : n + end - start] == ours[start:end] for n in range(len(theirs))):
                note = f"# as for {other.code} above: from {ours[start]} to {ours[end - 1]}"
                commands = [*ours[:start], note, *ours[end:]]
                return replace(one, remedy=replace(one.remedy, commands=commands))
    return one


def _line(page: Page, text: str, verbose: bool) -> None:
    """A paragraph; one line of it unless ``verbose``."""
    text = text if verbose else page.cut(page.clean(text), page.width - 2)
    page.paragraph((text, ""), indent=2, hanging=4)


def _areas(page: Page, report: Report, snapshot: Snapshot, verbose: bool) -> None:
    if verbose:
        lines = areas.area_lines(report, snapshot)
        entries = [
            (
                line.outcome,
                f"{line.name}:",
                line.why or areas.facts_and_counts(line.area, line.results, report, snapshot),
            )
            for line in lines
        ]
    else:
        entries = [
            (outcome, ", ".join(names) + (":" if text else ""), text)
            for outcome, text, names in areas.statuses(report, snapshot)
            if outcome in ("pass", "skipped")  # the others are above
        ]
    cells = max((len(page.word(outcome)) for outcome, _, _ in entries), default=0)
    for outcome, names, text in entries:
        style = "quiet" if outcome == "skipped" else ""
        if outcome == "skipped" and not verbose:
            room = max(page.width - cells - 2 - len(names), page.width // 3)
            text = page.cut(page.clean(text), room)
        spans = [(part, style) for part in (names, text) if part]
        page.hanging((page.word(outcome).ljust(cells), outcome), *spans)
    reasons = areas.skip_reasons(report) if verbose else {}
    if reasons:
        number = sum(map(len, reasons.values()))
        page.blank()
        page.paragraph((f"Skipped: {number} check{'' if number == 1 else 's'}", "heading"))
    for reason, codes in reasons.items():
        page.paragraph((f"{code_ranges(codes)}:", ""), (reason, "quiet"), indent=2, hanging=4)


def _ending(page: Page, report: Report, implied: bool, verbose: bool) -> None:
    failed = any(result.outcome == "fail" for result in report.results)
    root = report.root if verbose or not failed else ""
    words, command = _next(report, page, implied)
    if root or command or page.tokens:
        page.blank()
    if root:
        page.paragraph((root, ""), hanging=2)
    if command:
        there = page.away and command.startswith(_DOCTOR)
        where = ", on that machine:" if there else ":"
        page.paragraph((f"{words}{where}", ""), hanging=2)
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
        found = worst_first(report.results)
        if len(found) == 1 and len(found[0].findings) == 1:
            return "", ""  # its remedy is all that there is to do
        code = next((one.code for one in found if one.outcome == "fail"), first["fail"])
        return f"Fix {code} first, then run again", doctor
    for outcome in ("could-not-run", "warn"):
        if outcome in first:
            return f"What {first[outcome]} means", f"envcheck explain {first[outcome]}"
    if report.target is None and not report.counts.left_out:
        return "To check a Python environment, too", f"{doctor} --target PATH"
    return "", ""
