"""Sections of a bench's report beside its tables: parity of losses, and shapes."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from ..bench.records import BenchResult, RowResult
from ..bench.shapes import ShapeResult
from ..facts.bench import LeftOut
from . import bench_words as words
from .bench_table import notes

if TYPE_CHECKING:
    from .page import Page

_ALONE = (
    "No other mode's losses are there to hold beside these: --plan says why a mode is left out."
)
_SHAPES = 12  # of a row, that are shown unless the page is verbose


def parity(page: Page, result: BenchResult) -> None:
    """Losses of the same seed in different modes, and whether they agree."""
    from .page import Column

    rows = [one for one in result.rows if one.run.row.what == "parity"]
    if not rows:
        return
    off = words.off_reference(result.parity)
    page.blank()
    page.paragraph(("Parity:", "heading"), (words.title_of(rows[0]), ""), hanging=2)
    columns = (
        "AMP",
        words.COMPILERS[rows[0].run.row.style],
        "Type",
        "Steps",
        "First loss",
        "Last",
        "Off FP32",
    )
    page.table(
        [Column(one, right=place > 2) for place, one in enumerate(columns)],
        [[(cell, "") for cell in _losses(one, off.get(one.run.row.name, ""))] for one in rows],
        indent=2,
        gap=2,
    )
    for told in words.told_of_parity(result.parity) or [_ALONE] * (len(rows) == 1):
        page.paragraph((told, ""), indent=2, hanging=4)
    for note in notes(rows):
        page.paragraph((f"{', '.join(note.names)}:", "code"), (note.text, ""), indent=2, hanging=4)


def _losses(result: RowResult, off: str) -> list[str]:
    row, losses = result.run.row, result.run.losses
    compiled = "yes" if row.compiled else "no"
    told = [words.amp_of(row), compiled, words.precision_of(row), f"{len(losses):,}"]
    if not losses:
        return [*told, words.outcome_of(result), "", ""]
    return [*told, _loss(losses[:1]), _loss(losses[-max(1, len(losses) // 10) :]), off]


def _loss(losses: list[float | None]) -> str:
    """Their mean."""
    numbers = [loss for loss in losses if loss is not None]
    return f"{statistics.fmean(numbers):.4g}" if len(numbers) == len(losses) else "no number"


def scaling(page: Page, result: BenchResult) -> None:
    """Jobs on several GPUs beside what these do alone, and the slowest by name."""
    if not result.scaling:
        return
    page.blank()
    page.paragraph(("All GPUs together:", "heading"))
    for job in result.scaling:
        page.paragraph(
            (f"{words.job_of(job)}:", "code"), (words.told_of_job(job), ""), indent=2, hanging=4
        )


def shapes(page: Page, result: BenchResult, verbose: bool) -> None:
    """Rates of products and convolutions around round numbers: where they step up, and what is slow."""
    for found in result.shapes:
        page.blank()
        page.paragraph(("Shapes:", "heading"), (f"{found.name}, {found.dtype}", ""), hanging=2)
        for step in found.steps:
            page.paragraph((step.words, ""), indent=2, hanging=4)
        if not found.steps:
            page.paragraph(("no multiple from which a rate steps up", ""), indent=2, hanging=4)
        slow = [one for one in found.shapes if one.loses]
        shown = found.shapes if verbose else slow[:_SHAPES]
        for one in shown:
            words_of = one.words or "nothing was measured"
            lead = f"{one.shape.operation} {shape_name(one)}:"
            page.paragraph((lead, "code"), (words_of, ""), indent=2, hanging=4)
        if (left := len(found.shapes if verbose else slow) - len(shown)) > 0:
            page.paragraph((f"and {left} more with -v", "quiet"), indent=2)


def shape_name(shape: ShapeResult) -> str:
    """ "1023 × 1024 × 1023" """
    return " × ".join(str(size) for size in shape.shape.sizes)


def left_out(page: Page, planned: list[LeftOut]) -> None:
    """What the plan could not run here: a line each with the reason."""
    if not planned:
        return
    page.blank()
    page.paragraph(("Left out:", "heading"))
    for one in planned:
        page.paragraph((f"{one.name}:", "code"), (one.reason, ""), indent=2, hanging=4)
