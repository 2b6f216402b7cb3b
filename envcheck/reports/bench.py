"""The report of `envcheck bench` as text, and its plan."""

from __future__ import annotations

from typing import Any

from ..bench.plan import BenchPlan
from ..bench.records import BenchResult
from ..facts.snapshot import Snapshot
from . import bench_table, terminal
from . import bench_words as words
from .bench_model import SMALL, BenchReport, gpu_names
from .machine import describe_machine, describe_target
from .page import Column, Page
from .plain import SIGNS, WORDS, duration, number_of
from .sections import ReportSection, Table, problems


def render(
    report: BenchReport,
    found: BenchResult,
    snapshot: Snapshot,
    *,
    elsewhere: bool = False,
    verbose: bool = False,
    **style: Any,
) -> str:
    """The report as text; the keywords are those of the doctor's."""
    page = Page(**style)
    page.away = elsewhere
    _verdict(page, report)
    terminal.machine(page, report.machine, report.target, verbose)
    asked = ", ".join(report.asked) or "the default rows"
    over = ", interrupted" if report.interrupted else ""
    settings = " ".join(f"{name}={value}" for name, value in report.settings.items())
    page.paragraph(
        ("Ran:", "heading"), (f"{asked}; {duration(report.seconds)}{over}", ""), hanging=2
    )
    if settings:
        page.paragraph(("With:", "heading"), (settings, ""), hanging=2)
    for section in bench_table.sections(found, gpu_names(snapshot), report.left_out):
        terminal.draw(page, section)
    for problem in problems(report.results):
        terminal.problem(page, problem, verbose)
    page.blank()
    slow = [one for one in report.rows if one.result.verdict in ("warn", "fail") and one.gpus]
    if slow and not any(one.findings for one in report.results):
        page.paragraph(("What slows a GPU down, the doctor says:", ""))
        page.command("envcheck doctor")
    page.paragraph(("The same again:", ""))
    page.command(report.command)
    return page.text()


def plan(plan: BenchPlan, snapshot: Snapshot, **style: Any) -> str:
    """What --plan shows: the rows that would be run, their minutes, and what is left out."""
    page = Page(**style)
    count = number_of(len(plan.rows), "row")
    page.paragraph((f"{count}, about {duration(plan.seconds)}; nothing was run", "heading"))
    if plan.on_cpu:
        page.paragraph((SMALL, "warn"), hanging=2)
    terminal.machine(page, describe_machine(snapshot), describe_target(snapshot.target), True)
    gpus, rows = gpu_names(snapshot), []
    for row in plan.rows:
        where = words.where(row, gpus)
        where += f" ({words.TOGETHER[row.together]})" if row.together else ""
        cells = (words.model_of(row), where, words.precision_of(row), f"{row.batch:,}")
        rows.append([(row.name, "code"), *((cell, "") for cell in cells)])
    columns = [Column("Row", wraps=True), Column("Model", wraps=True), Column("GPU")]
    columns += [Column("Type"), Column("Batch", right=True)]
    reasons = ((one.name, one.reason) for one in plan.left_out)
    listed = ReportSection("rows", "Rows", "", [Table(columns, rows)])
    for section in (listed, *bench_table.named_notes("left-out", "Left out", reasons)):
        terminal.draw(page, section)
    return page.text()


def brief(report: BenchReport, **style: Any) -> str:
    """The verdict alone."""
    page = Page(**style)
    _verdict(page, report)
    return page.text()


def _verdict(page: Page, report: BenchReport) -> None:
    page.simulated(report.simulated)
    sign = SIGNS[report.outcome] if page.utf8 else WORDS[report.outcome]
    page.paragraph((f"{sign} {report.verdict}", report.outcome), hanging=2)
    if report.note:
        page.paragraph((report.note, "warn"), hanging=2)
