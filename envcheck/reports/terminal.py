"""The report for people: the verdict; the machine; what is wrong, with evidence and commands to paste;
Tensor Cores; areas; what to do next.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from msgspec.structs import replace

from ..facts.snapshot import Snapshot
from . import acceleration, areas, tensorcores
from .evidence_words import evidence_gist
from .machine import MachineDescription, TargetDescription, short
from .model import Report, verdict
from .page import Page
from .plain import SIGNS, WORDS, Column, code_ranges, evidence_text, gist
from .results import ReportedResult
from .sections import Advice, Heading, Note, ReportedProblem, ReportSection, Span, Table, problems
from .verdict import OverallVerdict

CONSEQUENCES, LOG_LINES, EVIDENCE = 6, 2, 12  # shown of a problem
_REPEATED = 3  # commands in a row that are not printed twice
_ONCE = ("-m ensurepip", "nvidia-bug-report.sh")  # ends of commands whose second run brings no more
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
    above: list[ReportedProblem] = []
    for found in problems(report.results):
        aside = found.outcome == "warn" and any(one.outcome == "fail" for one in above)
        problem(page, found if verbose else _beside(found, above), verbose, 1 if aside else 2)
        above.append(found)
    for of in (tensorcores.section, acceleration.section):
        if (section := of(report, snapshot, verbose)) is not None:
            draw(page, section)
    page.blank()
    _areas(page, report, snapshot, verbose)
    sound = not (report.counts.fail or report.counts.could_not_run)
    for one in report.results if verbose or sound else ():
        if one.note:
            code = (f"({one.code})", "quiet")
            page.paragraph(("Note:", "heading"), (one.note, ""), code, hanging=2)
    _ending(page, report, above, implied, verbose)
    return page.text()


def brief(report: Report, snapshot: Snapshot, **style: Any) -> str:
    """The verdict alone."""
    page = Page(**style)
    page.simulated(report.simulated)
    _verdict(page, verdict(report, snapshot))
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
    sign = f"{SIGNS[found.sign] if page.utf8 else WORDS[found.sign]} "
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


def problem(page: Page, one: ReportedProblem, verbose: bool, lines: int = 2) -> None:
    """What, where, the evidence in about as many lines, what follows from it, and what to do."""
    page.blank()
    unable = "could not run: " if one.outcome == "could-not-run" and page.signs else ""
    opening = (page.word(one.outcome), one.outcome), (one.code, "code")
    page.paragraph(*opening, (unable + one.message, ""), hanging=2)
    facts = "" if verbose else evidence_gist(one.evidence, " ".join([one.message, *one.where]))
    facts = page.cut(page.clean(facts), lines * (page.width - 8))
    where = f"{'; '.join(one.where)}:"
    beside = facts and one.where and page.fits(page.clean(f"{where} {facts}"), page.width - 2)
    if beside:
        page.paragraph((where, ""), (facts, "quiet"), indent=2)
    elif one.where:
        _list(page, "", one.where, "; ", verbose)
    if facts and not beside:
        page.paragraph((facts, "quiet"), indent=4, hanging=4)
    for evidence in one.evidence[:EVIDENCE] if verbose else ():
        page.paragraph((evidence_text(evidence), "quiet"), indent=4, hanging=6)
    if verbose and (rest := len(one.evidence) - EVIDENCE) > 0:
        page.paragraph((f"and {rest} more in --format json", "quiet"), indent=4, hanging=6)
    for gap in one.gaps:
        page.paragraph(("could not look:", ""), (gap, ""), indent=2, hanging=4)
    shown = " ".join([one.message, *(each.value for each in one.evidence)])
    named = [(other, gist(other)) for other in one.follows if other.findings][:CONSEQUENCES]
    if not verbose:
        named = [each for each in _log_lines(one.follows) if each[1] not in shown][:LOG_LINES]
    for other, text in named:
        text = text if verbose else page.cut(page.clean(text), page.width - 20)
        also = ("→ also:", ""), (other.code, "code"), (text, "")
        page.paragraph(*also, indent=2, hanging=4)
    codes = [other.code for other in one.follows if other not in [each for each, _ in named]]
    if codes:
        _list(page, "→ consequences: ", code_ranges(codes).split(", "), ", ", verbose)
    if one.remedy is not None:
        page.advice(one.remedy.text, one.remedy.commands)


def _log_lines(follows: Iterable[ReportedResult]) -> Iterator[tuple[ReportedResult, str]]:
    """The kernel's own words on consequences, the first of each."""
    for one in follows:
        lines = (each for finding in one.findings for each in finding.evidence)
        log = next((each.value for each in lines if each.fact.endswith("kernel.log")), "")
        if log:
            yield one, log


def _beside(one: ReportedProblem, above: Sequence[ReportedProblem]) -> ReportedProblem:
    """The problem; commands that stand in the same order under one above are named and not printed again,
    nor what needs to be done once."""
    if one.remedy is None:
        return one
    theirs = [(other.code, other.remedy.commands) for other in above if other.remedy]
    done = {command for _, commands in theirs for command in commands if command.endswith(_ONCE)}
    ours = [command for command in one.remedy.commands if command not in done]
    for code, commands in theirs:
        same = SequenceMatcher(None, commands, ours, autojunk=False).find_longest_match()
        start, end = same.b, same.b + same.size
        if same.size >= _REPEATED:
            ours[start:end] = [f"# as for {code} above: from {ours[start]} to {ours[end - 1]}"]
    return replace(one, remedy=replace(one.remedy, commands=ours))


def _list(page: Page, lead: str, items: Sequence[str], joint: str, verbose: bool) -> None:
    """Items in one line, the last ones omitted where they do not fit, unless ``verbose``."""
    text = page.clean(lead + joint.join(items))
    for number in range(len(items) - 1 if not verbose else 0, 0, -1):
        if page.fits(text, page.width - 2):
            break
        text = page.clean(f"{lead}{joint.join(items[:number])}{joint}…")
    page.paragraph((text if verbose else page.cut(text, page.width - 2), ""), indent=2, hanging=4)


def _areas(page: Page, report: Report, snapshot: Snapshot, verbose: bool) -> None:
    if verbose:
        entries = [
            (
                line.outcome,
                f"{line.name}:",
                line.why or areas.facts_and_counts(line.area, line.results, report, snapshot),
            )
            for line in areas.area_lines(report, snapshot)
        ]
    else:
        entries = [
            (outcome, ", ".join(names) + (":" if text else ""), text)
            for outcome, text, names in areas.short_statuses(report, snapshot)
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


def _ending(
    page: Page, report: Report, found: Sequence[ReportedProblem], implied: bool, verbose: bool
) -> None:
    root = report.root if verbose or not report.counts.fail else ""
    words, command = _next(report, found, page, implied)
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


def _next(
    report: Report, found: Sequence[ReportedProblem], page: Page, implied: bool
) -> tuple[str, str]:
    """The next thing to do, and what to type for it."""
    doctor = _DOCTOR
    if report.machine.origin == "nvidia-smi":
        return "To check the rest", doctor
    if report.target is not None:
        kind, _, place = report.target.location.partition(":")
        place = place if kind == "path" else report.target.location
        if not (implied and kind == "image"):
            doctor += f" --target {shlex.quote(page.restore(place))}"
    if found:
        first = found[0]
        if first.outcome == "could-not-run":
            code = first.code.partition(" ")[0].rstrip(",")
            return f"What {code} means", f"envcheck explain {code}"
        if first.outcome == "fail" and [one.outcome for one in found].count("fail") > 1:
            return f"Fix {first.code} first, then run again", doctor
        return "", ""  # its remedy is what there is to do
    if report.target is None and not report.counts.left_out:
        return "To check a Python environment, too", f"{doctor} --target PATH"
    return "", ""
