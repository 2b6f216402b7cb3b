"""A soak as one HTML page: its result, its GPUs, and what was sampled over the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..facts.soak import Mismatch, Soak, SoakMinute
from . import html
from .html import Masthead
from .page_sections import page_section, problem_sections
from .plain import Column
from .plots import Curve, lines
from .results import ReportedResult
from .sections import Block, Drawing, Heading, ReportSection, Table
from .soak import gpu_name, span, verdict, worst
from .soak import section as soak_section

_MOST = 20  # mismatches of a GPU
_WRONG = ("GPU", "At", "What", "Where", "Is", "Was")
_PLOTS: tuple[tuple[str, str, str, Callable[[SoakMinute], float | None]], ...] = (
    ("rate", "Products", "TFLOP/s", lambda one: one.tflops),
    ("temperature", "Temperature, the highest of each minute", "°C", lambda one: one.temperature_c),
    ("power", "Power", "W", lambda one: one.power_w),
    ("clock", "SM clock", "MHz", lambda one: one.sm_clock_mhz),
)


def render(soak: Soak, results: Sequence[ReportedResult]) -> str:
    title = f"envcheck soak, {soak.began}" if soak.began else "envcheck soak"
    head = Masthead(
        about_what="soak",
        title=title,
        kind=worst(results),
        word=verdict(soak, results),
        about=f"asked for {span(soak.asked)}",
    )
    return html.page(title, head, [*problem_sections(results), page_section(section(soak))])


def section(soak: Soak) -> ReportSection:
    """Without the findings; of a machine's page, too."""
    wrong = [
        (gpu_name(gpu), span(one.seconds), one.what, _place(one), one.found or one.bits, one.wanted)
        for gpu in soak.gpus
        for one in gpu.mismatches[:_MOST]
    ]
    blocks: list[Block] = [*_plots(soak)]
    if wrong:
        rows = [[(text, "") for text in row] for row in wrong]
        blocks += [Heading([("Wrong results", "")]), Table([*map(Column, _WRONG)], rows)]
    found = soak_section(soak)
    return ReportSection(found.id, found.title, "", [*found.blocks, *blocks])


def _plots(soak: Soak) -> Iterator[Drawing]:
    for name, title, unit, value in _PLOTS:
        curves = [
            Curve(gpu_name(gpu), [(m.began + m.seconds / 2, value(m)) for m in gpu.minutes])
            for gpu in soak.gpus
        ]
        if any(y for curve in curves for _x, y in curve.points):
            yield Drawing(lines(f"soak-{name}", title, unit, curves), title)


def _place(one: Mismatch) -> str:
    words = "" if one.row is None else f"row {one.row}, column {one.column}"
    unit = "" if one.unit is None else f"multiprocessor {one.unit}"
    return one.addresses or ", ".join(filter(None, (words, unit)))
