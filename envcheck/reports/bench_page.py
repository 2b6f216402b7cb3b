"""The page of `envcheck bench --format html`; its sections are in a machine's page, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..bench.records import BenchResult, RowResult
from ..facts.snapshot import Snapshot
from ..facts.telemetry import GpuSamples
from . import bench_table, html
from .bench_model import BenchReport, gpu_names
from .html import Masthead
from .page_sections import page_section, problem_sections
from .plain import Column
from .plots import Curve, Point, lines
from .sections import Advice, Drawing, ReportSection, Table

_GAP = 3.0  # seconds without a sample, which break a curve
# The samples that are drawn, and their units.
_OVER_TIME = {
    "sm_clock_mhz": ("SM clock", "MHz"),
    "temperature_c": ("Temperature", "°C"),
    "power_w": ("Power", "W"),
}


def render(report: BenchReport, found: BenchResult, snapshot: Snapshot) -> str:
    shown = [*sections(found, snapshot), _repeat(report)]
    title = f"envcheck bench: {'Simulated: ' if report.simulated else ''}{report.verdict}"
    return html.page(
        title,
        _masthead(report),
        [*problem_sections(report.results), *map(page_section, shown)],
    )


def _masthead(report: BenchReport) -> Masthead:
    judged = report.outcome != "pass" or any(one.result.verdict == "pass" for one in report.rows)
    settings = " ".join(f"{name}={value}" for name, value in report.settings.items())
    return Masthead(
        about_what="bench",
        title=report.machine.hostname or "This machine",
        kind=report.outcome if judged else "skipped",  # without a reference there is no "pass"
        word=report.verdict,
        about=report.machine.summary,
        simulated=report.simulated,
        note=report.note,
        facts=[
            ("Target", report.target.summary if report.target is not None else ""),
            ("Rows asked for", ", ".join(report.asked) or "the default rows"),
            ("Began", report.began + (", interrupted" if report.interrupted else "")),
            ("envcheck", report.envcheck),
            ("Kernel", report.machine.kernel or ""),
            ("Container", report.inside),
            ("Settings", settings),
        ],
    )


def _repeat(report: BenchReport) -> ReportSection:
    """What the same run needs, and what each row's own graph did."""
    names = ("Row", "Framework", "GPUs", "Seed", "Rounds", "Evidence")
    rows = []
    for one in report.rows[: bench_table.ROWS]:
        run = one.result.run
        evidence = ", ".join(f"{name}: {value}" for name, value in run.evidence.items())
        cells = (one.name, one.framework, ", ".join(one.gpus) or "CPU", str(run.row.seed))
        rows.append([(text, "") for text in (*cells, str(len(run.repetitions)), evidence)])
    table = Table([Column(name, wraps=name == "Evidence") for name in names], rows)
    command = Advice("Run this command.", [report.command], here=True)
    return ReportSection("repeat", "To repeat it", "", [command, table])


def sections(found: BenchResult, snapshot: Snapshot) -> list[ReportSection]:
    """All that was measured."""
    gpus = gpu_names(snapshot)
    shown = bench_table.sections(found, gpus, found.bench.left_out)
    if drawings := list(_over_time(found.rows, gpus)):
        shown.append(ReportSection("over-time", "While they ran", "", drawings))
    return shown


def _over_time(results: list[RowResult], gpus: Mapping[str, str]) -> Iterator[Drawing]:
    """What NVML sampled of each GPU while the rows ran."""
    samples: dict[str, list[GpuSamples]] = {}
    for result in results:
        for sampled in result.run.samples:
            samples.setdefault(sampled.gpu, []).append(sampled)
    for key, (title, unit) in _OVER_TIME.items():
        curves = [
            Curve(f"GPU {gpus.get(address, address)}", _points(found, key))
            for address, found in samples.items()
        ]
        if any(value is not None for curve in curves for _time, value in curve.points):
            yield Drawing(lines(key.replace("_", "-"), title, unit, curves), title)


def _points(samples: list[GpuSamples], key: str) -> list[Point]:
    """One curve of all rows' samples, broken where nothing was sampled."""
    values: dict[float, float | None] = {}
    for one in samples:
        values.update(zip(one.seconds, one.values.get(key, []), strict=False))
    points: list[Point] = []
    for time in sorted(values):
        if points and time - points[-1][0] > _GAP:
            points.append((time, None))
        points.append((time, values[time]))
    return points
