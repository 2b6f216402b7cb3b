"""The report of `envcheck bench` for people: what the machine is, tables, what is to be said of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..bench.records import BenchResult
from ..facts.base import known
from ..facts.bench import RowMemory
from ..facts.snapshot import Snapshot
from ..findings.model import Diagnosis, Outcome
from . import bench_table as tables
from . import bench_words as words
from .acceleration import section as acceleration
from .bench_model import BenchReport, gpu_names
from .bench_sections import left_out, parity, scaling, shapes
from .bench_sizes import sizes
from .bench_table import BenchCell, BenchColumn, BenchNote, BenchTable
from .machine import short
from .model import build
from .page import Column, Page, unchanged
from .plain import WORDS, evidence_text, grouped, worst_first

SIMULATED = "Simulated, not real:"
_GAP = 1
_CONTEXT = 3  # figures for context, unless the page is verbose
_NAMES = 4  # rows that a note names
_STATUS: dict[str, Outcome] = {
    "problems": "fail",
    "could-not-look": "could-not-run",
    "healthy": "pass",
}


def render(
    report: BenchReport,
    found: BenchResult,
    snapshot: Snapshot,
    *,
    width: int = 80,
    colour: bool = False,
    utf8: bool = True,
    restore: Callable[[str], str] = unchanged,
    in_place: Callable[[str], str] = unchanged,
    elsewhere: bool = False,
    verbose: bool = False,
) -> str:
    """The report as text; the keywords are those of the doctor's."""
    page = Page(width=width, colour=colour, utf8=utf8, restore=restore, in_place=in_place)
    page.away = elsewhere
    footnotes = tables.Footnotes()
    gpus = gpu_names(snapshot)
    _head(page, report, verbose)
    for table in tables.tables(found.rows, gpus, footnotes):
        page.blank()
        _table(page, table)
        _notes(page, table.notes)
    parity(page, found)
    scaling(page, found)
    shapes(page, found, verbose)
    sizes(page, found.sizes, gpus, verbose)
    left_out(page, report.left_out)
    _systems(page, report, snapshot, verbose)
    _legend(page, found, footnotes)
    _context(page, found, verbose)
    _end(page, report, verbose)
    return page.text()


def brief(report: BenchReport, **style: bool | int) -> str:
    """The verdict alone."""
    page = Page(**style)  # type: ignore[arg-type]
    if report.simulated:
        page.paragraph((SIMULATED, "heading"), (report.simulated, ""), hanging=2)
    _verdict(page, report)
    return page.text()


def _verdict(page: Page, report: BenchReport) -> None:
    outcome = _STATUS[report.status]
    if outcome == "pass" and any(row.result.verdict == "warn" for row in report.rows):
        outcome = "warn"
    sign = page.sign(outcome) if page.utf8 else WORDS[outcome]
    page.paragraph((f"{sign} {report.verdict}", outcome), hanging=2)


def _head(page: Page, report: BenchReport, verbose: bool) -> None:
    if report.simulated:
        page.paragraph((SIMULATED, "heading"), (report.simulated, ""), hanging=2)
    _verdict(page, report)
    if report.note:
        page.paragraph((report.note, "warn"), hanging=2)
    machine = report.machine
    told = (machine.summary if verbose else short(machine)) or "nothing is known of it"
    if machine.hostname:
        told = f"{machine.hostname}, {told}"
    page.paragraph(("Machine:", "heading"), (told, ""), hanging=2)
    if report.target is not None:
        page.paragraph(("Target:", "heading"), (report.target.summary, ""), hanging=2)
    asked = ", ".join(report.asked) or "what tells most"
    took = _minutes(report.seconds)
    over = ", interrupted" if report.interrupted else ""
    page.paragraph(("Ran:", "heading"), (f"{asked}; {took}{over}", ""), hanging=2)
    if report.settings:
        told = " ".join(f"{name}={value}" for name, value in report.settings.items())
        page.paragraph(("With:", "heading"), (told, ""), hanging=2)


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def _table(page: Page, table: BenchTable) -> None:
    page.paragraph((table.title, "heading"), hanging=2)
    shown = fitting(page, table)
    left_out = [c.heading for number, c in enumerate(table.columns) if number not in shown]
    columns = [table.columns[number] for number in shown]
    page.table(
        [Column(column.heading, right=column.right) for column in columns],
        [[_span(row[number]) for number in shown] for row in table.rows],
        indent=2,
        gap=_GAP,
    )
    if left_out:
        told = f"No room for {', '.join(left_out)}: a wider terminal or --format json has them."
        page.paragraph((told, "quiet"), indent=2)


def fitting(page: Page, table: BenchTable) -> list[int]:
    """The columns that have room, those of the highest rank left out first."""
    widths = [_width(column, table, number) for number, column in enumerate(table.columns)]
    shown = list(range(len(widths)))
    for number in sorted(shown, key=lambda number: -table.columns[number].rank):
        if sum(widths[one] + _GAP for one in shown) + 2 <= page.columns:
            break
        if table.columns[number].rank:
            shown.remove(number)
    return shown


def _width(column: BenchColumn, table: BenchTable, number: int) -> int:
    return max(len(column.heading), *(len(row[number].text) for row in table.rows))


def _span(cell: BenchCell) -> tuple[str, str]:
    return cell.text, cell.style


def _notes(page: Page, notes: Iterable[BenchNote]) -> None:
    for note in notes:
        word = tables.LEVELS.get(note.level, "")
        names = ", ".join(note.names[:_NAMES])
        if (more := len(note.names) - _NAMES) > 0:
            names += f" and {more} more"
        lead = [(word, note.level)] if word else []
        page.paragraph(*lead, (f"{names}:", "code"), (note.text, ""), indent=2, hanging=4)


def _systems(page: Page, report: BenchReport, snapshot: Snapshot, verbose: bool) -> None:
    """Memory, links and collectives, as the doctor's deep level tells of them."""
    if report.systems:
        acceleration(page, build(snapshot, Diagnosis(report.systems)), snapshot, verbose)


def _legend(page: Page, found: BenchResult, footnotes: tables.Footnotes) -> None:
    rows = found.rows
    told = []
    if any(one.rate is not None and one.rate.repetitions > 1 for one in rows):
        told.append("±: half of what the repetitions lie apart.")
    if any(one.speed_up is not None or words.unproven(one) for one in rows):
        told.append("Speed: over the same without the mode, where it is proven engaged.")
    if any(_has_memory(one.run.memory) for one in rows):
        told.append(
            "Tensors, Pool, Process: GiB at the most, by the framework's tensors, its allocator and"
            " the driver."
        )
    if any(one.utilisation for one in rows):
        told.append("MFU: of the chip's peak in that mode, by the model's operations.")
    notes = list(footnotes.lines())
    if not told and not notes:
        return
    page.blank()
    if told:
        page.paragraph((" ".join(told), "quiet"))
    for number, text in notes:
        page.paragraph((f"[{number}] {text}", "quiet"), hanging=4)


def _has_memory(memory: RowMemory) -> bool:
    told = (memory.tensors_mib, memory.pool_mib, memory.process_mib)
    return any(known(value) is not None for value in told)


def _context(page: Page, found: BenchResult, verbose: bool) -> None:
    lines = tables.context(found.rows)
    if not lines:
        return
    page.blank()
    page.paragraph(("For context, not a judgement:", "heading"))
    for name, text in lines if verbose else lines[:_CONTEXT]:
        page.paragraph((f"{name}:", "code"), (text, ""), indent=2, hanging=4)
    if not verbose and len(lines) > _CONTEXT:
        page.paragraph((f"and {len(lines) - _CONTEXT} more with -v", "quiet"), indent=2)


def _end(page: Page, report: BenchReport, verbose: bool) -> None:
    """What is wrong, and what to type."""
    for result in worst_first(report.results):
        page.blank()
        page.paragraph(
            (page.word(result.outcome), result.outcome), (result.code, "code"), (result.title, "")
        )
        for group in grouped(result.findings):
            page.paragraph((group.message, ""), indent=2, hanging=4)
            for evidence in group.evidence if verbose else ():
                page.paragraph((evidence_text(evidence), "quiet"), indent=4, hanging=6)
            if group.remedy is not None:
                page.paragraph(("To do:", "heading"), (group.remedy.text, ""), indent=2, hanging=4)
                for command in group.remedy.commands:
                    page.command(command)
    page.blank()
    slow = [one for one in report.rows if one.result.verdict in ("warn", "fail")]
    if any(one.gpus for one in slow) and not any(one.findings for one in report.results):
        page.paragraph(("What holds a GPU back, the doctor says:", ""))
        page.command("envcheck doctor")
    page.paragraph(("The same again:", ""))
    page.command(report.command)
