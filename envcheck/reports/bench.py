"""The report of `envcheck bench` as text, and its plan."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable

from ..bench.plan import BenchPlan
from ..bench.records import BenchResult, RowResult
from ..facts.base import known
from ..facts.bench import LeftOut
from ..facts.snapshot import Snapshot
from ..findings.model import Outcome
from . import bench_table as tables
from . import bench_words as words
from .bench_model import SMALL, BenchReport, gpu_names
from .bench_progress import duration
from .bench_sizes import sizes
from .bench_table import BenchNote, BenchTable
from .machine import MachineDescription, TargetDescription, describe_machine, describe_target, short
from .model import build_from
from .page import Column, Page, unchanged
from .plain import WORDS, evidence_text, grouped, number_of, worst_first
from .terminal import draw_acceleration as acceleration

_GAP = 1
_CONTEXT = 3  # figures for context, unless the page is verbose
_SHAPES = 12  # the same of shapes
_NAMES = 4  # rows that a note names
_STATUS: dict[str, Outcome] = {
    "problems": "fail",
    "could-not-look": "could-not-run",
    "healthy": "pass",
}
_ALONE = "No other mode was measured to compare these losses with: --plan says why it is left out."


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
    _parity(page, found)
    jobs = [(words.job_of(job), words.job_in_words(job)) for job in found.scaling]
    _listed(page, "All GPUs together:", jobs)
    _shapes(page, found, verbose)
    sizes(page, found.sizes, gpus, verbose)
    _left_out(page, report.left_out)
    if report.systems:  # memory, links and collectives
        acceleration(page, build_from(snapshot, report.systems), snapshot, verbose)
    _legend(page, found, footnotes)
    context = tables.context(found.rows)
    most = len(context) if verbose else _CONTEXT
    _listed(page, "For context, not a judgement:", context, most)
    _problems(page, report, verbose)
    _next(page, report)
    return page.text()


def plan(
    plan: BenchPlan, snapshot: Snapshot, *, width: int = 80, colour: bool = False, utf8: bool = True
) -> str:
    """What --plan shows: the rows that would be run, their minutes, and what is left out."""
    page = Page(width=width, colour=colour, utf8=utf8)
    parts = [number_of(len(plan.rows), "row")] if plan.rows or not plan.systems else []
    parts += [f"{number_of(len(plan.systems), 'system')} by size"] if plan.systems else []
    about = f"{' and '.join(parts)}, about {duration(plan.seconds)}; nothing was run"
    page.paragraph((about, "heading"))
    if plan.rows and not any(row.gpus for row in plan.rows):
        page.paragraph((SMALL, "warn"), hanging=2)
    _machine(page, describe_machine(snapshot), describe_target(snapshot.target), verbose=True)
    if plan.rows:
        _planned(page, plan, gpu_names(snapshot))
    if plan.systems:
        page.blank()
        names = f"{', '.join(plan.systems)}, from 8 B to 1 GiB"
        page.paragraph(("By size:", "heading"), (names, ""), hanging=2)
    _left_out(page, plan.left_out)
    return page.text()


def _planned(page: Page, plan: BenchPlan, gpus: dict[str, str]) -> None:
    rows = []
    for row in plan.rows:
        where = words.where(row, gpus)
        where += f" ({words.TOGETHER.get(row.together, row.together)})" if row.together else ""
        batch = f"{row.batch:,}" + ("…" if row.largest else "")
        cells = (words.model_of(row), where, words.precision_of(row), batch)
        rows.append([(row.name, "code"), *((cell, "") for cell in cells)])
    columns = [Column("Row", wraps=True), Column("Model", wraps=True), Column("GPU")]
    columns += [Column("Type"), Column("Batch", right=True)]
    page.blank()
    page.table(columns, rows, indent=2, gap=2)
    if any(row.largest for row in plan.rows):
        page.paragraph(("…: from there on, the largest that fits", "quiet"), indent=2)


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
        [[(row[place].text, row[place].style) for place in shown] for row in table.rows],
        indent=2,
        gap=_GAP,
    )
    if omitted := [column.heading for column in table.columns if column not in columns]:
        text = f"No room for {', '.join(omitted)}: a wider terminal or --format json has them."
        page.paragraph((text, "quiet"), indent=2)


def fitting(page: Page, table: BenchTable) -> list[int]:
    widths = [
        max(len(column.heading), *(len(row[place].text) for row in table.rows))
        for place, column in enumerate(table.columns)
    ]
    shown = list(range(len(widths)))
    for place in sorted(shown, key=lambda place: -table.columns[place].rank):
        if sum(widths[one] + _GAP for one in shown) + 2 <= page.columns:
            break
        if table.columns[place].rank:
            shown.remove(place)
    return shown


def _notes(page: Page, notes: Iterable[BenchNote]) -> None:
    for note in notes:
        names = ", ".join(note.names[:_NAMES])
        if (more := len(note.names) - _NAMES) > 0:
            names += f" and {more} more"
        lead = [(note.word, note.level)] if note.word else []
        page.paragraph(*lead, (f"{names}:", "code"), (note.text, ""), indent=2, hanging=4)


def _listed(page: Page, title: str, items: list[tuple[str, str]], most: int | None = None) -> None:
    """Names and what belongs to each, under a title; nothing without items."""
    if items:
        page.blank()
        page.paragraph((title, "heading"))
    for name, text in items[:most]:
        page.paragraph((f"{name}:", "code"), (text, ""), indent=2, hanging=4)
    if most is not None and len(items) > most:
        page.paragraph((f"and {len(items) - most} more with -v", "quiet"), indent=2)


def _left_out(page: Page, planned: list[LeftOut]) -> None:
    _listed(page, "Left out:", [(one.name, one.reason) for one in planned])


def _parity(page: Page, result: BenchResult) -> None:
    """Losses of the same seed in different modes, and whether they agree."""
    rows = [one for one in result.rows if one.run.row.what == "parity"]
    if not rows:
        return
    off = words.off_reference(result.parity)
    page.blank()
    page.paragraph(("Parity:", "heading"), (words.title_of(rows[0]), ""), hanging=2)
    headings = ("AMP", words.COMPILERS[rows[0].run.row.style], "Type", "Steps", "First loss")
    page.table(
        [Column(one, right=place > 2) for place, one in enumerate((*headings, "Last", "Off FP32"))],
        [[(cell, "") for cell in _losses(one, off.get(one.run.row.name, ""))] for one in rows],
        indent=2,
        gap=2,
    )
    for line in words.parity_in_words(result.parity) or [_ALONE] * (len(rows) == 1):
        page.paragraph((line, ""), indent=2, hanging=4)
    _notes(page, tables.notes(rows))


def _losses(result: RowResult, off: str) -> list[str]:
    row, losses = result.run.row, result.run.losses
    compiled = "yes" if row.compiled else "no"
    cells = [words.amp_of(row), compiled, words.precision_of(row), f"{len(losses):,}"]
    if not losses:
        return [*cells, words.outcome_of(result), "", ""]
    return [*cells, _mean(losses[:1]), _mean(losses[-max(1, len(losses) // 10) :]), off]


def _mean(losses: list[float | None]) -> str:
    numbers = [loss for loss in losses if loss is not None]
    return f"{statistics.fmean(numbers):.4g}" if len(numbers) == len(losses) else "no number"


def _shapes(page: Page, result: BenchResult, verbose: bool) -> None:
    """Rates of products and convolutions around round numbers: where they step up, and what is slow."""
    for found in result.shapes:
        page.blank()
        page.paragraph(("Shapes:", "heading"), (f"{found.name}, {found.dtype}", ""), hanging=2)
        steps = [step.words for step in found.steps] or ["no multiple from which a rate steps up"]
        for step in steps:
            page.paragraph((step, ""), indent=2, hanging=4)
        shapes = found.shapes if verbose else [one for one in found.shapes if one.loses]
        shown = shapes if verbose else shapes[:_SHAPES]
        for one in shown:
            name = " × ".join(map(str, one.shape.sizes))
            lead = (f"{one.shape.operation} {name}:", "code")
            page.paragraph(lead, (one.words or "nothing was measured", ""), indent=2, hanging=4)
        if more := len(shapes) - len(shown):
            page.paragraph((f"and {more} more with -v", "quiet"), indent=2)


def _legend(page: Page, found: BenchResult, footnotes: tables.Footnotes) -> None:
    rows = found.rows
    memory = [one.run.memory for one in rows]
    sizes = [size for one in memory for size in (one.tensors_mib, one.pool_mib, one.process_mib)]
    legend = {
        "±: half of what the repetitions lie apart.": any(
            one.rate is not None and one.rate.repetitions > 1 for one in rows
        ),
        "Speed: over the same without the mode, where it is proven engaged.": any(
            one.speed_up is not None or words.unproven(one) for one in rows
        ),
        "Tensors, Pool, Process: GiB at the most, by the framework's tensors, its allocator and"
        " the driver.": any(known(size) is not None for size in sizes),
        "MFU: of the chip's peak in that mode, by the model's operations.": any(
            one.utilisation for one in rows
        ),
    }
    notes = [f"[{place}] {text}" for place, text in footnotes.lines()]
    if any(legend.values()) or notes:
        page.blank()
    if text := " ".join(line for line, applies in legend.items() if applies):
        page.paragraph((text, "quiet"))
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
