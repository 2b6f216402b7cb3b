"""What `envcheck bench --plan` shows: the rows as they would be run, their minutes, and what is left out."""

from __future__ import annotations

from ..bench.plan import BenchPlan
from ..facts.snapshot import Snapshot
from . import bench_words as words
from .bench_model import SMALL, gpu_names
from .bench_progress import duration
from .bench_sections import left_out
from .machine import describe_machine, describe_target
from .page import Column, Page
from .plain import number_of


def render(
    plan: BenchPlan, snapshot: Snapshot, *, width: int = 80, colour: bool = False, utf8: bool = True
) -> str:
    page = Page(width=width, colour=colour, utf8=utf8)
    what = number_of(len(plan.rows), "row") if plan.rows or not plan.systems else ""
    if plan.systems:
        what += f"{' and ' if what else ''}{number_of(len(plan.systems), 'system')} by size"
    told = f"{what}, about {duration(plan.seconds)}; nothing was run"
    page.paragraph((told, "heading"))
    if plan.rows and not any(row.gpus for row in plan.rows):
        page.paragraph((SMALL, "warn"), hanging=2)
    page.paragraph(("Machine:", "heading"), (describe_machine(snapshot).summary, ""), hanging=2)
    target = describe_target(snapshot.target)
    if target is not None:
        page.paragraph(("Target:", "heading"), (target.summary, ""), hanging=2)
    if plan.rows:
        _rows(page, plan, snapshot)
    if plan.systems:
        page.blank()
        names = ", ".join(plan.systems)
        page.paragraph(("By size:", "heading"), (f"{names}, from 8 B to 1 GiB", ""), hanging=2)
    left_out(page, plan.left_out)
    return page.text()


def _rows(page: Page, plan: BenchPlan, snapshot: Snapshot) -> None:
    page.blank()
    gpus = gpu_names(snapshot)
    page.table(
        [
            Column("Row", wraps=True),
            Column("Model", wraps=True),
            Column("GPU"),
            Column("Type"),
            Column("Batch", right=True),
        ],
        [
            [
                (row.name, "code"),
                (words.model_of(row), ""),
                (_where(words.where(row, gpus), row.together), ""),
                (words.precision_of(row), ""),
                (f"{row.batch:,}" + ("…" if row.largest else ""), ""),
            ]
            for row in plan.rows
        ],
        indent=2,
        gap=2,
    )
    if any(row.largest for row in plan.rows):
        page.paragraph(("…: from there on, the largest that fits", "quiet"), indent=2)


def _where(gpus: str, together: str) -> str:
    return f"{gpus} ({words.TOGETHER.get(together, together)})" if together else gpus
