"""The page of plots of `envcheck bench --format html`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..bench.records import BenchResult, RowResult
from ..facts.base import known
from ..facts.snapshot import Snapshot
from ..facts.telemetry import GpuSamples
from . import bench_sizes
from . import bench_table as tables
from . import bench_words as words
from . import html_page as html
from .bench_model import BenchReport, RowReport, gpu_names
from .bench_table import BenchTable, Footnotes
from .plain import WORDS, finding_lines
from .plots.bars import PlotBar, bars
from .plots.lines import Band, Curve, lines
from .plots.thin import Point

# A page of more is no page any more: the JSON report has all of them.
_TABLES, _ROWS, _CURVES = 24, 200, 16

_GAP = 3.0  # seconds without a sample, which break a curve
# The columns of samples that are drawn: what each is, its unit, and whether its axis begins at zero.
_OVER_TIME = {
    "sm_clock_mhz": ("SM clock", "MHz", True),
    "temperature_c": ("Temperature", "°C", False),
    "power_w": ("Power", "W", True),
}


def render(report: BenchReport, found: BenchResult, snapshot: Snapshot) -> str:
    """The whole page. Of the Snapshot's words nothing becomes markup."""
    gpus = gpu_names(snapshot)
    footnotes = Footnotes()
    shown = tables.tables(found.rows[:_ROWS], gpus, footnotes)[:_TABLES]
    parts = [*_head(report)]
    for number, table in enumerate(shown, 1):
        parts += _table(table, number, gpus)
    parts += _parity(found)
    parts += _scaling(found)
    parts += _shapes(found)
    parts += bench_sizes.page(found.sizes, gpus)
    parts += _left_out(report)
    parts += _over_time(found.rows, gpus)
    parts += _footnotes(found, footnotes)
    parts += _checks(report)
    parts += _repeat(report)
    title = report.verdict if not report.simulated else f"Simulated: {report.verdict}"
    return html.whole(f"envcheck bench: {title}", parts)


def _head(report: BenchReport) -> Iterator[str]:
    machine = report.machine
    if report.simulated:
        yield html.paragraph(f"Simulated, not real: {report.simulated}", "warn")
    yield html.heading(report.verdict, 1)
    yield html.paragraph(report.note, "warn")
    yield html.facts(
        [
            ("Machine", ", ".join(filter(None, (machine.hostname, machine.summary)))),
            ("Target", report.target.summary if report.target is not None else ""),
            ("Rows asked for", ", ".join(report.asked) or "what tells most"),
            ("Began", report.began + (", interrupted" if report.interrupted else "")),
        ]
    )


def _table(table: BenchTable, number: int, gpus: Mapping[str, str]) -> Iterator[str]:
    yield html.heading(table.title)
    yield html.plot(_rates(table, number, gpus))
    yield html.plot(_memory(table, number, gpus))
    yield html.table(
        [("Row", ""), *((c.heading, "right" if c.right else "") for c in table.columns)],
        [
            [(result.run.row.name, ""), *((cell.text, cell.style) for cell in row)]
            for result, row in zip(table.results, table.rows, strict=True)
        ],
    )
    yield html.listed(
        (tables.LEVELS.get(note.level, ""), note.level, _said(note.names, note.text))
        for note in table.notes
    )


def _said(names: tuple[str, ...], text: str) -> str:
    return f"{', '.join(names)}: {text}"


def _rates(table: BenchTable, number: int, gpus: Mapping[str, str]) -> str:
    """How fast each row was, with the figure that it is held against."""
    rows = []
    kinds: dict[str, None] = {}
    for result in table.results:
        reference, rate = words.fitting(result), result.rate
        if reference is not None:
            kinds[tables.KINDS[reference.kind]] = None
        rows.append(
            PlotBar(
                label=_label(result, table, gpus),
                value=None if rate is None else rate.median,
                words=_words(result),
                least=None if rate is None or rate.repetitions < 2 else rate.least,
                most=None if rate is None or rate.repetitions < 2 else rate.most,
                mark=None if reference is None else reference.rate,
                colour=_COLOURS.get(result.verdict, 0),
            )
        )
    return bars(
        f"rates-{number}", table.unit.capitalize(), table.unit, rows, mark=" or ".join(kinds)
    )


_COLOURS = {"fail": 4, "warn": 1}


def _label(result: RowResult, table: BenchTable, gpus: Mapping[str, str]) -> str:
    """What tells a row from the others of its table."""
    row = result.run.row
    amp = words.amp_of(row)
    told = [
        {"no": "", "yes": "AMP"}.get(amp, amp),
        words.precision_of(row),
        words.COMPILERS[row.style] if row.compiled else "",
        "TF-TRT" if row.tensorrt else "",
        row.data if row.data != "synthetic" else "",
        f"batch {row.batch:,}",
    ]
    if any(column.key == "gpu" for column in table.columns):
        told.append(f"GPU {words.where(row, gpus)}")
    return " ".join(filter(None, told))


def _words(result: RowResult) -> str:
    if result.rate is None:
        return words.outcome_of(result)
    told = [words.number(result.rate.median)]
    told += filter(None, [words.share_of(result)])
    if result.verdict in ("warn", "fail"):
        told.append(WORDS[result.verdict])
    return ", ".join(told)


def _memory(table: BenchTable, number: int, gpus: Mapping[str, str]) -> str:
    """The most that each row took, by who counted."""
    kinds = {"tensors": "tensors_mib", "pool": "pool_mib", "process": "process_mib"}
    rows = []
    for result in table.results:
        label = f"{_label(result, table, gpus)}: "
        for place, (kind, field) in enumerate(kinds.items()):
            mib = known(getattr(result.run.memory, field))
            if mib is not None:
                bar = PlotBar(label=label + kind, value=mib / 1024, colour=(0, 5, 7)[place])
                rows.append(bar)
                label = ""
    return bars(f"memory-{number}", "Memory", "GiB", rows) if rows else ""


def _parity(found: BenchResult) -> Iterator[str]:
    """Losses of the same seed over one another."""
    rows = [one for one in found.rows if one.run.row.what == "parity"]
    if not rows:
        return
    yield html.heading(f"Parity: {words.title_of(rows[0])}")
    curves = [_losses(one) for one in rows if one.run.losses]
    yield html.plot(lines("parity", "Losses", "loss", curves, along="step"))
    yield html.listed(("", "", told) for told in words.told_of_parity(found.parity))
    yield html.listed(
        (tables.LEVELS.get(note.level, ""), note.level, _said(note.names, note.text))
        for note in tables.notes(rows)
    )


def _losses(result: RowResult) -> Curve:
    return Curve(
        name=result.run.row.name.removeprefix("parity "),
        points=[(float(step), loss) for step, loss in enumerate(result.run.losses, 1)],
    )


def _scaling(found: BenchResult) -> Iterator[str]:
    """Jobs on several GPUs beside what these do alone."""
    if not found.scaling:
        return
    yield html.heading("All GPUs together")
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
    yield html.plot(bars("scaling", unit.capitalize(), unit, rows, mark="the same GPUs alone"))
    yield html.listed(("", "", words.told_of_job(job)) for job in found.scaling)


def _left_out(report: BenchReport) -> Iterator[str]:
    if not report.left_out:
        return
    yield html.heading("Left out")
    yield html.listed(("", "", f"{one.name}: {one.reason}") for one in report.left_out[:_ROWS])


def _shapes(result: BenchResult) -> Iterator[str]:
    for number, found in enumerate(result.shapes, 1):
        yield html.heading(f"Shapes: {found.name}, {found.dtype}")
        yield html.listed(("", "", step.words) for step in found.steps)
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
                yield html.plot(bars(f"shapes-{number}-{operation}", title, "TFLOP/s", rows[:60]))


def _over_time(results: list[RowResult], gpus: Mapping[str, str]) -> Iterator[str]:
    """What NVML said of each GPU while the rows ran."""
    samples: dict[str, list[GpuSamples]] = {}
    for result in results:
        for one in result.run.samples:
            samples.setdefault(one.gpu, []).append(one)
    if not samples:
        return
    yield html.heading("While they ran")
    for key, (title, unit, from_zero) in _OVER_TIME.items():
        curves = [
            Curve(name=f"GPU {gpus.get(address, address)}", points=points)
            for address, parts in list(samples.items())[:_CURVES]
            if (points := _points(parts, key))
        ]
        if curves:
            name = key.replace("_", "-")
            yield html.plot(
                lines(name, title, unit, curves, bands=_bands(results), from_zero=from_zero)
            )


def _points(parts: list[GpuSamples], key: str) -> list[Point]:
    """Of several rows, which may have been measured in turn, one curve; broken where nothing was sampled."""
    values: dict[float, float | None] = {}
    for part in parts:
        values.update(zip(part.seconds, part.values.get(key, []), strict=False))
    times = sorted(values)
    if not any(value is not None for value in values.values()):
        return []
    points: list[Point] = []
    for time in times:
        if points and time - points[-1][0] > _GAP:
            points.append((time, None))
        points.append((time, values[time]))
    return points


def _bands(results: list[RowResult]) -> list[Band]:
    """When the repetitions of each group were measured."""
    groups: dict[str, list[float]] = {}
    for result in results:
        name = result.run.row.group or result.run.row.name
        for one in result.run.repetitions:
            groups.setdefault(name, []).extend((one.began, one.began + one.seconds))
    return [Band(min(times), max(times), name) for name, times in groups.items()]


def _footnotes(found: BenchResult, footnotes: Footnotes) -> Iterator[str]:
    notes = [(f"[{number}]", "", text) for number, text in footnotes.lines()]
    if notes:
        yield html.heading("What it is held against")
        yield html.listed(notes)
    context = [(f"{name}:", "", text) for name, text in tables.context(found.rows)]
    if context:
        yield html.heading("For context, not a judgement")
        yield html.listed(context[:_ROWS])


def _checks(report: BenchReport) -> Iterator[str]:
    told = [one for one in report.results if one.findings]
    if told:
        yield html.heading("What is wrong, and what to do")
    for one in told:
        yield html.heading(f"{one.code}: {one.title}", 3)
        yield html.listed(("", "", line) for line in finding_lines(one))


def _repeat(report: BenchReport) -> Iterator[str]:
    """What is needed to have the same figures again."""
    yield html.heading("To repeat it")
    yield html.command(report.command)
    settings = " ".join(f"{name}={value}" for name, value in report.settings.items())
    machine = report.machine
    yield html.facts(
        [
            ("envcheck", report.envcheck),
            ("Driver", report.driver),
            ("CUDA of the driver", machine.cuda or ""),
            ("Kernel", machine.kernel or ""),
            ("System", machine.os or ""),
            ("Container", report.inside),
            ("Settings", settings),
        ]
    )
    yield html.table(
        [
            ("Row", ""),
            ("Framework", ""),
            ("GPUs", ""),
            ("Seed", "right"),
            ("Rounds", "right"),
            ("Evidence", "wraps"),
        ],
        [_repeated(row) for row in report.rows[:_ROWS]],
    )


def _repeated(row: RowReport) -> list[tuple[str, str]]:
    run = row.result.run
    evidence = ", ".join(f"{name}: {value}" for name, value in run.evidence.items())
    return [
        (row.name, ""),
        (row.framework, ""),
        (", ".join(row.gpus) or "CPU", ""),
        (str(run.row.seed), ""),
        (str(len(run.repetitions)), ""),
        (evidence, ""),
    ]
