"""A soak as one HTML page: its result, its GPUs, and what was sampled over the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..facts.soak import Mismatch, Soak, SoakMinute
from . import html
from .html import Masthead, PageSection
from .plain import WORDS
from .plots import Band, Curve, lines
from .results import ReportedResult
from .soak import computed_by, gpu_name, span, state, verdict, worst

_SLOWDOWNS = (
    "hw_thermal_slowdown",
    "sw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "hw_slowdown",
)
_MOST = 20  # mismatches of a GPU


def _slowed(one: SoakMinute) -> float:
    return 100.0 * sum(one.throttled.get(name, 0.0) for name in _SLOWDOWNS)


_PLOTS: tuple[tuple[str, str, str, Callable[[SoakMinute], float | None]], ...] = (
    ("rate", "Products", "TFLOP/s", lambda one: one.tflops),
    ("temperature", "Temperature, the highest of each minute", "°C", lambda one: one.temperature_c),
    ("memory-temperature", "Memory temperature", "°C", lambda one: one.memory_temperature_c),
    ("power", "Power", "W", lambda one: one.power_w),
    ("clock", "SM clock", "MHz", lambda one: one.sm_clock_mhz),
    ("throttled", "Slowed by heat or the power brake", "% of the samples", _slowed),
)


def render(soak: Soak, results: Sequence[ReportedResult]) -> str:
    title = f"envcheck soak, {soak.began}" if soak.began else "envcheck soak"
    word, about = verdict(soak, results)
    head = Masthead(
        about_what="soak",
        title=title,
        kind=worst(results),
        word=word,
        items=[about],
        about=f"asked for {span(soak.asked)}",
    )
    found = [(result, finding) for result in results for finding in result.findings]
    wrong = {"findings": found, "words": WORDS}
    sections = [
        PageSection("wrong", "Problems", "soak/findings.html", wrong, str(len(found))),
        PageSection("gpus", "GPUs", "soak/gpus.html", _gpus(soak)),
        PageSection("over-time", "Over time", "soak/plots.html", {"plots": [*_plots(soak)]}),
        PageSection("mismatches", "Wrong results", "soak/mismatches.html", _mismatches(soak)),
        PageSection("ran", "What ran", "soak/ran.html", {"facts": [*_facts(soak)]}),
    ]
    return html.page(title, head, [one for one in sections if next(iter(one.data.values()))])


def section(soak: Soak, results: Sequence[ReportedResult]) -> PageSection:
    """The same within a machine's page, which has the findings elsewhere."""
    word, about = verdict(soak, results)
    data = {**_gpus(soak), "kind": worst(results), "word": word, "about": about}
    data |= {"plots": [*_plots(soak)], **_mismatches(soak)}
    return PageSection("soak", "Soak", "soak/section.html", data)


def _gpus(soak: Soak) -> dict[str, object]:
    rows = []
    for gpu in soak.gpus:
        failed = gpu.outcome in ("died", "hung", "error")
        about = state(gpu) + (f": {gpu.reason}" if gpu.reason else "")
        cells = [gpu_name(gpu), (about, "fail" if failed else ""), f"{gpu.products:,}"]
        cells.append((f"{gpu.wrong:,}", "fail" if gpu.wrong else ""))
        rows.append([*cells, f"{gpu.memory_mib:,}", f"{gpu.passes:,}", f"{len(gpu.xids):,}"])
    return {"rows": rows}


def _plots(soak: Soak) -> Iterator[tuple[str, str]]:
    bands = [
        Band(gpu.ended, soak.seconds, f"{gpu_name(gpu)} {state(gpu)}")
        for gpu in soak.gpus
        if gpu.ended is not None
    ]
    for name, title, unit, value in _PLOTS:
        curves = [
            Curve(gpu_name(gpu), [(m.began + m.seconds / 2, value(m)) for m in gpu.minutes])
            for gpu in soak.gpus
        ]
        curves = [one for one in curves if any(y for _x, y in one.points)]
        if curves:
            yield lines(f"soak-{name}", title, unit, curves, bands=bands), title


def _mismatches(soak: Soak) -> dict[str, object]:
    rows = [
        (
            *(gpu_name(gpu), span(one.seconds), one.what, _place(one)),
            *(one.found or one.bits, one.wanted, f"{one.words:,}"),
        )
        for gpu in soak.gpus
        for one in gpu.mismatches[:_MOST]
    ]
    return {"mismatches": rows}


def _place(one: Mismatch) -> str:
    if one.addresses:
        return one.addresses
    words = "" if one.row is None else f"row {one.row}, column {one.column}"
    return words + ("" if one.unit is None else f", multiprocessor {one.unit}")


def _facts(soak: Soak) -> Iterator[tuple[str, str]]:
    yield "asked for", span(soak.asked)
    yield "took", span(soak.seconds)
    for gpu in soak.gpus:
        yield gpu_name(gpu), computed_by(gpu)
        yield f"{gpu_name(gpu)}, no samples", gpu.no_samples
