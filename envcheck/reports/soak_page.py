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

_SLOWDOWNS = ("hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown")
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
    asked = f"asked for {span(soak.asked)}"
    head = Masthead(
        about_what="soak", title=title, kind=worst(results), word=word, items=[about], about=asked
    )
    found = [(result, finding) for result in results for finding in result.findings]
    sections = [section(soak, results)]
    if found:
        data = {"findings": found, "words": WORDS}
        problems = PageSection("wrong", "Problems", "soak/findings.html", data, str(len(found)))
        sections.insert(0, problems)
    return html.page(title, head, sections)


def section(soak: Soak, results: Sequence[ReportedResult]) -> PageSection:
    """All but the findings; of a machine's page, too."""
    word, about = verdict(soak, results)
    rows = []
    for gpu in soak.gpus:
        failed = "fail" if gpu.outcome in ("died", "hung", "error") else ""
        what = state(gpu) + (f": {gpu.reason}" if gpu.reason else "")
        cells = [gpu_name(gpu), (what, failed), f"{gpu.products:,}"]
        cells.append((f"{gpu.wrong:,}", "fail" if gpu.wrong else ""))
        rows.append([*cells, f"{gpu.memory_mib:,}", f"{gpu.passes:,}", f"{len(gpu.xids):,}"])
    wrong = [
        (gpu_name(gpu), span(one.seconds), one.what, _place(one), one.found or one.bits, one.wanted)
        for gpu in soak.gpus
        for one in gpu.mismatches[:_MOST]
    ]
    facts = [("products by", words) for words in dict.fromkeys(map(computed_by, soak.gpus))]
    facts += [(f"{gpu_name(gpu)}, no samples", gpu.no_samples) for gpu in soak.gpus]
    data = {"kind": worst(results), "word": word, "about": about, "rows": rows}
    data |= {"plots": [*_plots(soak)], "mismatches": wrong, "facts": facts}
    return PageSection("soak", "Soak", "soak/section.html", data)


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


def _place(one: Mismatch) -> str:
    words = "" if one.row is None else f"row {one.row}, column {one.column}"
    unit = "" if one.unit is None else f"multiprocessor {one.unit}"
    return one.addresses or ", ".join(filter(None, (words, unit)))
