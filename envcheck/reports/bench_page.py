"""The page of `envcheck bench --format html`; its parts are in a machine's page, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..bench.records import BenchResult, RowResult
from ..facts.bench import LeftOut
from ..facts.snapshot import Snapshot
from ..facts.telemetry import GpuSamples
from . import bench_table as tables
from . import bench_words as words
from . import html
from .bench_model import BenchReport, gpu_names
from .bench_table import BenchTable, Footnotes
from .html import Masthead, PageSection
from .plain import WORDS, grouped
from .plots import Band, Curve, PlotBar, Point, bars, lines

TABLES, ROWS = 24, 200  # shown on a page: the JSON report has all of them
_CURVES = 16
_GAP = 3.0  # seconds without a sample, which break a curve
_KINDS = {"problems": "fail", "could-not-look": "could-not-run"}
_COLOURS = {"fail": 4, "warn": 1}
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
    """Without a reference the page is "skipped", not "pass"."""
    verdicts: set[str] = {row.result.verdict for row in report.rows}
    if "warn" in verdicts | {one.outcome for one in report.results}:
        return _KINDS.get(report.status, "warn")
    return _KINDS.get(report.status, "pass" if "pass" in verdicts else "skipped")


def _masthead(report: BenchReport) -> Masthead:
    return Masthead(
        about_what="bench",
        title=report.machine.hostname or "This machine",
        kind=_kind(report),
        word=report.word[:1].upper() + report.word[1:],
        items=[report.about] if report.about else [],
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
    facts = [
        ("envcheck", report.envcheck),
        ("Driver", report.driver),
        ("CUDA of the driver", machine.cuda or ""),
        ("Kernel", machine.kernel or ""),
        ("System", machine.os or ""),
        ("Container", report.inside),
        ("Settings", " ".join(f"{name}={value}" for name, value in report.settings.items())),
    ]
    return {"command": report.command, "facts": facts, "rows": report.rows[:ROWS]}


def parts(
    found: BenchResult, snapshot: Snapshot, left_out: Sequence[LeftOut] = (), most: int = TABLES
) -> list[PageSection]:
    """All that was measured. most: tables that are shown."""
    gpus = gpu_names(snapshot)
    notes = Footnotes()
    shown = tables.tables(found.rows[:ROWS], gpus, notes)[:most]
    sections = [_table(table, place, gpus) for place, table in enumerate(shown, 1)]
    jobs = [words.job_in_words(job) for job in found.scaling]
    sections.append(_part("scaling", "All GPUs together", items=jobs))
    reasons = [f"{one.name}: {one.reason}" for one in left_out[:ROWS]]
    sections.append(_part("left-out", "Left out", items=reasons))
    sections.append(_part("over-time", "While they ran", [*_over_time(found.rows, gpus)]))
    references = [*notes.lines()]
    sections.append(_part("held-against", "What it is compared with", items=references))
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
    return _part(f"rows-{place}", table.title, drawn, notes=table.notes, table=table)


def _rates(table: BenchTable, place: int, gpus: Mapping[str, str]) -> str:
    """How fast each row was, with the figure that it is compared with."""
    rows = []
    kinds: dict[str, None] = {}
    for result in table.results:
        reference, rate = words.reference_of(result), result.rate
        if reference is not None:
            kinds[words.KINDS[reference.kind]] = None
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


def _label(result: RowResult, table: BenchTable, gpus: Mapping[str, str]) -> str:
    """What distinguishes a row from the others of its table."""
    row = result.run.row
    several = any(column.heading == "GPU" for column in table.columns)
    names = [
        "AMP" if row.precision == "amp" else "",
        words.precision_of(row),
        words.COMPILERS[row.style] if row.compiled else "",
        f"batch {row.batch:,}",
        f"GPU {words.where(row, gpus)}" if several else "",
    ]
    return " ".join(filter(None, names))


def _rate_in_words(result: RowResult) -> str:
    if result.rate is None:
        return words.outcome_of(result)
    judged = WORDS[result.verdict] if result.verdict in ("warn", "fail") else ""
    parts = (words.number(result.rate.median), words.share_of(result), judged)
    return ", ".join(filter(None, parts))


def _over_time(results: Sequence[RowResult], gpus: Mapping[str, str]) -> Iterator[Drawing]:
    """What NVML sampled of each GPU while the rows ran."""
    samples: dict[str, list[GpuSamples]] = {}
    bands = []
    for result in results:
        for sampled in result.run.samples:
            samples.setdefault(sampled.gpu, []).append(sampled)
        ran = result.run.repetitions
        if ran:
            bands.append(Band(ran[0].began, ran[-1].began + ran[-1].seconds, result.run.row.name))
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
