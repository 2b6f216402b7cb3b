"""The report of `envcheck bench` as text, and its plan."""

from __future__ import annotations

from collections.abc import Callable

from ..bench.plan import BenchPlan
from ..bench.records import BenchResult
from ..facts.snapshot import Snapshot
from ..findings.model import Outcome
from . import bench_table as tables
from . import bench_words as words
from .bench_model import SMALL, BenchReport, gpu_names
from .bench_progress import duration
from .bench_table import BenchTable
from .machine import MachineDescription, TargetDescription, describe_machine, describe_target, short
from .page import Column, Page, unchanged
from .plain import WORDS, evidence_text, grouped, number_of, worst_first

_GAP = 1
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
    _head(page, report, verbose)
    for table in tables.tables(found.rows, gpu_names(snapshot), footnotes):
        page.blank()
        _table(page, table)
        _notes(page, table)
    jobs = [(job.name, words.job_in_words(job)) for job in found.scaling]
    _listed(page, "All GPUs together:", jobs)
    _listed(page, "Left out:", [(one.name, one.reason) for one in report.left_out])
    _legend(page, footnotes)
    _problems(page, report, verbose)
    _next(page, report)
    return page.text()


def plan(
    plan: BenchPlan, snapshot: Snapshot, *, width: int = 80, colour: bool = False, utf8: bool = True
) -> str:
    """What --plan shows: the rows that would be run, their minutes, and what is left out."""
    page = Page(width=width, colour=colour, utf8=utf8)
    count = number_of(len(plan.rows), "row")
    page.paragraph((f"{count}, about {duration(plan.seconds)}; nothing was run", "heading"))
    if plan.on_cpu:
        page.paragraph((SMALL, "warn"), hanging=2)
    _machine(page, describe_machine(snapshot), describe_target(snapshot.target), verbose=True)
    gpus, rows = gpu_names(snapshot), []
    for row in plan.rows:
        where = words.where(row, gpus)
        where += f" ({words.TOGETHER[row.together]})" if row.together else ""
        cells = (words.model_of(row), where, words.precision_of(row), f"{row.batch:,}")
        rows.append([(row.name, "code"), *((cell, "") for cell in cells)])
    columns = [Column("Row", wraps=True), Column("Model", wraps=True), Column("GPU")]
    columns += [Column("Type"), Column("Batch", right=True)]
    page.blank()
    page.table(columns, rows, indent=2, gap=2)
    _listed(page, "Left out:", [(one.name, one.reason) for one in plan.left_out])
    return page.text()


def brief(report: BenchReport, **style: bool | int) -> str:
    """The verdict alone."""
    page = Page(**style)  # type: ignore[arg-type]
    _verdict(page, report)
    return page.text()


def _verdict(page: Page, report: BenchReport) -> None:
    page.simulated(report.simulated)
    outcome = _STATUS[report.status]
    if outcome == "pass" and any(row.result.verdict == "warn" for row in report.rows):
        outcome = "warn"
    sign = page.sign(outcome) if page.utf8 else WORDS[outcome]
    page.paragraph((f"{sign} {report.verdict}", outcome), hanging=2)


def _head(page: Page, report: BenchReport, verbose: bool) -> None:
    _verdict(page, report)
    if report.note:
        page.paragraph((report.note, "warn"), hanging=2)
    _machine(page, report.machine, report.target, verbose)
    asked = ", ".join(report.asked) or "the default rows"
    over = ", interrupted" if report.interrupted else ""
    ran = f"{asked}; {duration(report.seconds)}{over}"
    settings = " ".join(f"{name}={value}" for name, value in report.settings.items())
    for name, value in (("Ran:", ran), ("With:", settings)):
        if value:
            page.paragraph((name, "heading"), (value, ""), hanging=2)


def _machine(
    page: Page, machine: MachineDescription, target: TargetDescription | None, verbose: bool
) -> None:
    summary = (machine.summary if verbose else short(machine)) or "nothing is known of it"
    about = ", ".join(filter(None, (machine.hostname, summary)))
    page.paragraph(("Machine:", "heading"), (about, ""), hanging=2)
    if target is not None:
        page.paragraph(("Target:", "heading"), (target.summary, ""), hanging=2)


def _table(page: Page, table: BenchTable) -> None:
    """The columns that fit; those of the highest rank are omitted first."""
    page.paragraph((table.title, "heading"), hanging=2)
    shown = fitting(page, table)
    columns = [table.columns[place] for place in shown]
    page.table(
        [Column(column.heading, right=column.right) for column in columns],
        [[row[place] for place in shown] for row in table.rows],
        indent=2,
        gap=_GAP,
    )
    if omitted := [column.heading for column in table.columns if column not in columns]:
        text = f"No room for {', '.join(omitted)}: a wider terminal or --format json has them."
        page.paragraph((text, "quiet"), indent=2)


def fitting(page: Page, table: BenchTable) -> list[int]:
    """The places of the columns that fit."""
    widths = [
        max(len(column.heading), *(len(row[place][0]) for row in table.rows))
        for place, column in enumerate(table.columns)
    ]
    shown = list(range(len(widths)))
    for place in sorted(shown, key=lambda place: -table.columns[place].rank):
        if sum(widths[one] + _GAP for one in shown) + 2 <= page.columns:
            break
        if table.columns[place].rank:
            shown.remove(place)
    return shown


def _notes(page: Page, table: BenchTable) -> None:
    for note in table.notes:
        names = ", ".join(note.names[:_NAMES])
        if (more := len(note.names) - _NAMES) > 0:
            names += f" and {more} more"
        lead = [(note.word, note.level)] if note.word else []
        page.paragraph(*lead, (f"{names}:", "code"), (note.text, ""), indent=2, hanging=4)


def _listed(page: Page, title: str, items: list[tuple[str, str]]) -> None:
    """Names and what belongs to each, under a title; nothing without items."""
    if items:
        page.blank()
        page.paragraph((title, "heading"))
    for name, text in items:
        page.paragraph((f"{name}:", "code"), (text, ""), indent=2, hanging=4)


def _legend(page: Page, footnotes: tables.Footnotes) -> None:
    notes = list(footnotes.lines())
    if notes:
        page.blank()
    for note in notes:
        page.paragraph((note, "quiet"), hanging=4)


def _problems(page: Page, report: BenchReport, verbose: bool) -> None:
    for result in worst_first(report.results):
        page.blank()
        word = (page.word(result.outcome), result.outcome)
        page.paragraph(word, (result.code, "code"), (result.title, ""))
        for group in grouped(result.findings):
            page.paragraph((group.message, ""), indent=2, hanging=4)
            for evidence in group.evidence if verbose else ():
                page.paragraph((evidence_text(evidence), "quiet"), indent=4, hanging=6)
            if group.remedy is not None:
                page.remedy(group.remedy)


def _next(page: Page, report: BenchReport) -> None:
    page.blank()
    slow = [one for one in report.rows if one.result.verdict in ("warn", "fail") and one.gpus]
    if slow and not any(one.findings for one in report.results):
        page.paragraph(("What slows a GPU down, the doctor says:", ""))
        page.command("envcheck doctor")
    page.paragraph(("The same again:", ""))
    page.command(report.command)
