"""The page of `envcheck bench --format html`; its parts are in a machine's page, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..bench.records import BenchResult, RowResult
from ..facts.base import known
from ..facts.bench import LeftOut
from ..facts.snapshot import Snapshot
from ..facts.telemetry import GpuSamples
from . import bench_sizes, html
from . import bench_table as tables
from . import bench_words as words
from .bench_model import BenchReport, gpu_names
from .bench_table import BenchTable, Footnotes
from .html import Masthead, PageSection
from .plain import WORDS, grouped
from .plots import Band, Curve, PlotBar, Point, bars, lines

TABLES, ROWS = 24, 200  # shown on a page: the JSON report has all of them
_CURVES = 16
_GAP = 3.0  # seconds without a sample, which break a curve
_KINDS = {"problems": "fail", "could-not-look": "could-not-run", "healthy": "pass"}
_COLOURS = {"fail": 4, "warn": 1}
_MEMORY = {"tensors": "tensors_mib", "pool": "pool_mib", "process": "process_mib"}
# The samples that are drawn: title, unit, and whether the axis begins at zero.
_OVER_TIME = {
    "sm_clock_mhz": ("SM clock", "MHz", True),
    "temperature_c": ("Temperature", "°C", False),
    "power_w": ("Power", "W", True),
}

Drawing = tuple[str, str]  # an SVG, and what it is called


def render(report: BenchReport, found: BenchResult, snapshot: Snapshot) -> str:
    simulated = "Simulated: " if report.simulated else ""
    problems = [(one, grouped(one.findings)) for one in report.results if one.findings]
    checks = PageSection("wrong", "Problems", "bench/problems.html", {"problems": problems})
    repeat = PageSection("repeat", "To repeat it", "bench/repeat.html", _repeat(report))
    sections = [checks] if problems else []
    sections += [*parts(found, snapshot, report.left_out), repeat]
    title = f"envcheck bench: {simulated}{report.verdict}"
    return html.page(title, _masthead(report), sections)


def _kind(report: BenchReport) -> str:
    """Without anything to compare with, the page is "skipped", not "pass"."""
    kind = _KINDS[report.status]
    verdicts: set[str] = {row.result.verdict for row in report.rows}
    verdicts |= {one.outcome for one in (*report.results, *report.systems)}
    judged = "pass" in {row.result.verdict for row in report.rows} or report.systems
    return (
        kind
        if kind != "pass"
        else "warn"
        if "warn" in verdicts
        else "pass"
        if judged
        else "skipped"
    )


def _masthead(report: BenchReport) -> Masthead:
    word, colon, rest = report.verdict.partition(": ")
    return Masthead(
        about_what="bench",
        title=report.machine.hostname or "This machine",
        kind=_kind(report),
        word=word[:1].upper() + word[1:],
        items=[rest] if colon else [],
        about=report.machine.summary,
        simulated=report.simulated,
        note=report.note,
        facts=[
            ("Target", report.target.summary if report.target is not None else ""),
            ("Rows asked for", ", ".join(report.asked) or "the default rows"),
            ("Began", report.began + (", interrupted" if report.interrupted else "")),
        ],
    )


def _repeat(report: BenchReport) -> dict[str, object]:
    machine = report.machine
    return {
        "command": report.command,
        "facts": [
            ("envcheck", report.envcheck),
            ("Driver", report.driver),
            ("CUDA of the driver", machine.cuda or ""),
            ("Kernel", machine.kernel or ""),
            ("System", machine.os or ""),
            ("Container", report.inside),
            ("Settings", " ".join(f"{name}={value}" for name, value in report.settings.items())),
        ],
        "rows": report.rows[:ROWS],
    }


def parts(
    found: BenchResult, snapshot: Snapshot, left_out: Sequence[LeftOut] = (), most: int = TABLES
) -> list[PageSection]:
    """All that was measured. most: tables that are shown."""
    gpus = gpu_names(snapshot)
    notes = Footnotes()
    shown = tables.tables(found.rows[:ROWS], gpus, notes)[:most]
    sections = [_table(table, place, gpus) for place, table in enumerate(shown, 1)]
    sections += _parity(found)
    jobs = [words.job_in_words(job) for job in found.scaling]
    sections.append(_part("scaling", "All GPUs together", _scaling(found), jobs))
    sections += _shapes(found)
    for what, title, series in bench_sizes.kinds(found.sizes):
        lines_of = [f"{bench_sizes.name_of(one, gpus)}: {bench_sizes.about(one)}" for one in series]
        sections.append(_part(what, title, bench_sizes.plots(what, series, gpus), lines_of))
    reasons = [f"{one.name}: {one.reason}" for one in left_out[:ROWS]]
    sections.append(_part("left-out", "Left out", items=reasons))
    sections.append(_part("over-time", "While they ran", [*_over_time(found.rows, gpus)]))
    references = [f"[{place}] {text}" for place, text in notes.lines()]
    sections.append(_part("held-against", "What it is compared with", items=references))
    context = [f"{name}: {text}" for name, text in tables.context(found.rows)]
    sections.append(_part("context", "For context, not a judgement", items=context[:ROWS]))
    return [one for one in sections if any(one.data.values())]


def _part(
    name: str,
    title: str,
    plots: Sequence[Drawing] = (),
    items: Sequence[str] = (),
    notes: Sequence[tables.BenchNote] = (),
    table: BenchTable | None = None,
) -> PageSection:
    data = {"plots": plots, "items": items, "notes": notes, "table": table}
    return PageSection(f"bench-{name}", title, "bench/part.html", data)


def _table(table: BenchTable, place: int, gpus: Mapping[str, str]) -> PageSection:
    drawn = [(_rates(table, place, gpus), f"Rates: {table.title}")]
    if memory := _memory(table, place, gpus):
        drawn.append((memory, f"Memory: {table.title}"))
    return _part(f"rows-{place}", table.title, drawn, notes=table.notes, table=table)


def _rates(table: BenchTable, place: int, gpus: Mapping[str, str]) -> str:
    """How fast each row was, with the figure that it is compared with."""
    rows = []
    kinds: dict[str, None] = {}
    for result in table.results:
        reference, rate = words.fitting(result), result.rate
        if reference is not None:
            kinds[tables.KINDS[reference.kind]] = None
        several = rate if rate is not None and rate.repetitions > 1 else None
        bar = PlotBar(
            label=_label(result, table, gpus),
            value=None if rate is None else rate.median,
            words=_rate_in_words(result),
            least=None if several is None else several.least,
            most=None if several is None else several.most,
            mark=None if reference is None else reference.rate,
            colour=_COLOURS.get(result.verdict, 0),
        )
        rows.append(bar)
    title = table.unit.capitalize()
    return bars(f"rates-{place}", title, table.unit, rows, mark=" or ".join(kinds))


def _memory(table: BenchTable, place: int, gpus: Mapping[str, str]) -> str:
    """The most memory that each row took, by who counted it."""
    rows = []
    for result in table.results:
        label = f"{_label(result, table, gpus)}: "
        for (kind, field), colour in zip(_MEMORY.items(), (0, 5, 7), strict=True):
            mib = known(getattr(result.run.memory, field))
            if mib is not None:
                rows.append(PlotBar(label=label + kind, value=mib / 1024, colour=colour))
                label = ""
    return bars(f"memory-{place}", "Memory", "GiB", rows) if rows else ""


def _label(result: RowResult, table: BenchTable, gpus: Mapping[str, str]) -> str:
    """What distinguishes a row from the others of its table."""
    row = result.run.row
    amp = words.amp_of(row)
    several = any(column.key == "gpu" for column in table.columns)
    names = [
        {"no": "", "yes": "AMP"}.get(amp, amp),
        words.precision_of(row),
        words.COMPILERS[row.style] if row.compiled else "",
        "TF-TRT" if row.tensorrt else "",
        row.data if row.data != "synthetic" else "",
        f"batch {row.batch:,}",
        f"GPU {words.where(row, gpus)}" if several else "",
    ]
    return " ".join(filter(None, names))


def _rate_in_words(result: RowResult) -> str:
    if result.rate is None:
        return words.outcome_of(result)
    judged = WORDS[result.verdict] if result.verdict in ("warn", "fail") else ""
    return ", ".join(
        filter(None, (words.number(result.rate.median), words.share_of(result), judged))
    )


def _parity(found: BenchResult) -> Iterator[PageSection]:
    """Losses of the same seed over one another."""
    rows = [one for one in found.rows if one.run.row.what == "parity"]
    if rows:
        curves = [
            Curve(
                one.run.row.name.removeprefix("parity "),
                [(float(step), loss) for step, loss in enumerate(one.run.losses, 1)],
            )
            for one in rows
            if one.run.losses
        ]
        plot = (lines("parity", "Losses", "loss", curves, along="step"), "Losses")
        title = f"Parity: {words.title_of(rows[0])}"
        items = words.parity_in_words(found.parity)
        yield _part("parity", title, [plot], items, tables.notes(rows))


def _scaling(found: BenchResult) -> list[Drawing]:
    """Jobs on several GPUs beside what these do alone."""
    if not found.scaling:
        return []
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
    return [(drawn, "All GPUs together")]


def _shapes(result: BenchResult) -> Iterator[PageSection]:
    for place, found in enumerate(result.shapes, 1):
        drawn = []
        for operation in ("product", "convolution"):
            rows = [
                PlotBar(
                    label=f"{one.shape.edge} (multiple of {one.multiple})",
                    value=one.tflops,
                    words="" if one.tflops is not None else one.words or "nothing was measured",
                    least=one.least or None,
                    most=one.most or None,
                    colour=0 if one.multiple >= 8 else 6,
                )
                for one in found.shapes
                if one.shape.operation == operation
            ]
            title = f"{operation.capitalize()}s around round numbers"
            if rows:
                plot = bars(f"shapes-{place}-{operation}", title, "TFLOP/s", rows[:60])
                drawn.append((plot, title))
        title = f"Shapes: {found.name}, {found.dtype}"
        yield _part(f"shapes-{place}", title, drawn, [step.words for step in found.steps])


def _over_time(results: Sequence[RowResult], gpus: Mapping[str, str]) -> Iterator[Drawing]:
    """What NVML sampled of each GPU while the rows ran."""
    samples: dict[str, list[GpuSamples]] = {}
    groups: dict[str, list[float]] = {}
    for result in results:
        for sampled in result.run.samples:
            samples.setdefault(sampled.gpu, []).append(sampled)
        name = result.run.row.group or result.run.row.name
        for one in result.run.repetitions:
            groups.setdefault(name, []).extend((one.began, one.began + one.seconds))
    bands = [Band(min(times), max(times), name) for name, times in groups.items()]
    for key, (title, unit, from_zero) in _OVER_TIME.items():
        curves = [
            Curve(f"GPU {gpus.get(address, address)}", points)
            for address, found in list(samples.items())[:_CURVES]
            if (points := _points(found, key))
        ]
        if curves:
            name = key.replace("_", "-")
            drawn = lines(name, title, unit, curves, bands=bands, from_zero=from_zero)
            yield drawn, f"{title} over time"


def _points(samples: list[GpuSamples], key: str) -> list[Point]:
    """One curve of all rows' samples, broken where nothing was sampled."""
    values: dict[float, float | None] = {}
    for one in samples:
        values.update(zip(one.seconds, one.values.get(key, []), strict=False))
    if not any(value is not None for value in values.values()):
        return []
    points: list[Point] = []
    for time in sorted(values):
        if points and time - points[-1][0] > _GAP:
            points.append((time, None))
        points.append((time, values[time]))
    return points
