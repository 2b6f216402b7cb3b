"""What a bench came to, part by part: for its own page, and for the machine's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...bench.records import BenchResult, RowResult
from ...facts.bench import LeftOut
from ...facts.snapshot import Snapshot
from .. import bench_sizes
from .. import bench_table as tables
from .. import bench_words as words
from .. import html_page as html
from ..bench_model import gpu_names
from ..bench_table import BenchTable, Footnotes
from ..html_page import PageSection
from ..plots.bars import PlotBar, bars
from ..plots.lines import Curve, lines
from .bars import memory, rates
from .over_time import over_time

# A page of more is no page any more: the JSON report has all of them.
TABLES, ROWS = 24, 200


def parts(
    found: BenchResult, snapshot: Snapshot, left_out: Sequence[LeftOut] = (), most: int = TABLES
) -> list[PageSection]:
    """All that was measured. most: tables that are shown."""
    gpus = gpu_names(snapshot)
    footnotes = Footnotes()
    shown = tables.tables(found.rows[:ROWS], gpus, footnotes)[:most]
    told: list[tuple[str, str, list[str]]] = [
        (f"rows-{number}", table.title, [*_table(table, number, gpus)])
        for number, table in enumerate(shown, 1)
    ]
    told += _parity(found)
    told.append(("scaling", "All GPUs together", [*_scaling(found)]))
    told += _shapes(found)
    told += bench_sizes.page(found.sizes, gpus)
    reasons = html.listed(("", "", f"{one.name}: {one.reason}") for one in left_out[:ROWS])
    told.append(("left-out", "Left out", [reasons]))
    told.append(("over-time", "While they ran", [*over_time(found.rows, gpus)]))
    notes = [(f"[{number}]", "", text) for number, text in footnotes.lines()]
    told.append(("held-against", "What it is held against", [html.listed(notes)]))
    context = [(f"{name}:", "", text) for name, text in tables.context(found.rows)]
    listed = html.listed(context[:ROWS])
    told.append(("context", "For context, not a judgement", [listed]))
    return [PageSection(f"bench-{id_}", title, body) for id_, title, body in told if any(body)]


def _table(table: BenchTable, number: int, gpus: Mapping[str, str]) -> Iterator[str]:
    yield html.plot(rates(table, number, gpus), f"Rates: {table.title}")
    yield html.plot(memory(table, number, gpus), f"Memory: {table.title}")
    yield html.table(
        [("Row", ""), *((c.heading, "right" if c.right else "") for c in table.columns)],
        [
            [(result.run.row.name, ""), *((cell.text, cell.style) for cell in row)]
            for result, row in zip(table.results, table.rows, strict=True)
        ],
    )
    yield _notes(table.notes)


def _notes(notes: Sequence[tables.BenchNote]) -> str:
    return html.listed(
        (tables.LEVELS.get(note.level, ""), note.level, f"{', '.join(note.names)}: {note.text}")
        for note in notes
    )


def _parity(found: BenchResult) -> Iterator[tuple[str, str, list[str]]]:
    """Losses of the same seed over one another."""
    rows = [one for one in found.rows if one.run.row.what == "parity"]
    if not rows:
        return
    curves = [_losses(one) for one in rows if one.run.losses]
    told = [
        html.plot(lines("parity", "Losses", "loss", curves, along="step"), "Losses"),
        html.listed(("", "", told) for told in words.told_of_parity(found.parity)),
        _notes(tables.notes(rows)),
    ]
    yield "parity", f"Parity: {words.title_of(rows[0])}", told


def _losses(result: RowResult) -> Curve:
    return Curve(
        name=result.run.row.name.removeprefix("parity "),
        points=[(float(step), loss) for step, loss in enumerate(result.run.losses, 1)],
    )


def _scaling(found: BenchResult) -> Iterator[str]:
    """Jobs on several GPUs beside what these do alone."""
    if not found.scaling:
        return
    rows = [
        PlotBar(
            label=words.job_of(job),
            value=job.rate,
            words=f"{words.number(job.rate)}, {words.share(job.efficiency)}",
            mark=job.alone,
        )
        for job in found.scaling
    ]
    unit = found.scaling[0].unit
    drawn = bars("scaling", unit.capitalize(), unit, rows, mark="the same GPUs alone")
    yield html.plot(drawn, "All GPUs together")
    yield html.listed(("", "", words.told_of_job(job)) for job in found.scaling)


def _shapes(result: BenchResult) -> Iterator[tuple[str, str, list[str]]]:
    for number, found in enumerate(result.shapes, 1):
        told = [html.listed(("", "", step.words) for step in found.steps)]
        for operation in ("product", "convolution"):
            rows = [
                PlotBar(
                    label=f"{one.shape.edge} (multiple of {one.multiple})",
                    value=one.tflops,
                    words="" if one.tflops is not None else one.words or "nothing was measured",
                    least=one.least or None,
                    most=one.most or None,
                    colour=(6, 0)[one.multiple >= 8],
                )
                for one in found.shapes
                if one.shape.operation == operation
            ]
            if rows:
                title = f"{operation.capitalize()}s around round numbers"
                drawn = bars(f"shapes-{number}-{operation}", title, "TFLOP/s", rows[:60])
                told.append(html.plot(drawn, title))
        yield f"shapes-{number}", f"Shapes: {found.name}, {found.dtype}", told
