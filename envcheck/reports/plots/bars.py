"""Horizontal bars: a row each, with its value, its spread, and the figure that it is held against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from . import svg
from .scale import Axis, axis, is_plottable, number

_ROW, _TOP, _BAR = 26.0, 30.0, 14.0
_LABEL, _VALUE = 250.0, 130.0  # the widths of the words before and after a bar, at most


class PlotBar(msgspec.Struct, frozen=True, kw_only=True):
    """``value``: None where there is none, and ``words`` say why. least, most: of what was measured.

    ``mark``: a figure that the bar is held against, which is drawn as a line across it.
    """

    label: str
    value: float | None = None
    words: str = ""  # after the bar; its value where empty
    least: float | None = None
    most: float | None = None
    mark: float | None = None
    colour: int = 0  # of the curves' colours: bars of one kind have one


def bars(
    name: str, title: str, unit: str, rows: Sequence[PlotBar], *, mark: str = "", about: str = ""
) -> str:
    """An SVG. ``mark``: what the lines across bars are ("published"); name: its own in the page."""
    wanted = max((svg.width_of(row.label) for row in rows), default=0.0)
    left = min(_LABEL, wanted) + 8
    values = [v for row in rows for v in (row.value, row.most, row.mark) if v is not None]
    scale = axis(values, left, svg.WIDTH - _VALUE, from_zero=True)
    bottom = _TOP + _ROW * len(rows)
    parts = [*_grid(scale, bottom, unit)]
    for place, row in enumerate(rows):
        parts += _bar(row, scale, left, _TOP + _ROW * place)
    height = bottom + 36
    if mark and any(is_plottable(row.mark) for row in rows):
        y = height + 10
        parts += [
            svg.tag("path", d=f"M{left:.1f} {y - 10:.1f}v12", class_="mark"),
            svg.label(f"the line across a bar: {mark}", left + 8, y, "quiet"),
        ]
        height += 20
    return svg.whole(name, title, about or _told(rows, unit), height, parts)


def _grid(scale: Axis, bottom: float, unit: str) -> Iterator[str]:
    for tick in scale.ticks:
        x = scale.at(tick)
        yield svg.tag("path", d=f"M{x:.1f} {_TOP - 4:.1f}V{bottom:.1f}", class_="grid")
        yield svg.label(scale.words(tick), x, bottom + 14, "quiet", "middle")
    yield svg.label(unit, (scale.start + scale.end) / 2, bottom + 30, "quiet", "middle")


def _bar(row: PlotBar, scale: Axis, left: float, top: float) -> Iterator[str]:
    middle = top + _BAR / 2 + 2
    yield svg.label(svg.cut(row.label, left - 8), left - 8, middle + 4, "", "end")
    value = row.value
    if value is None or not is_plottable(value):
        words = svg.cut(row.words or "no figure", svg.WIDTH - left - 8)
        yield svg.label(words, left + 6, middle + 4, "quiet")
        return
    end = scale.at(value)
    start = scale.at(0.0)
    yield svg.tag(
        "rect",
        x=min(start, end),
        y=top + 2,
        width=max(1.0, abs(end - start)),
        height=_BAR,
        class_=f"c{row.colour % len(svg.DASHES)}",
    )
    furthest = end
    least, most = row.least, row.most
    if least is not None and most is not None and is_plottable(least) and is_plottable(most):
        low, high = scale.at(least), scale.at(most)
        yield svg.tag(
            "path",
            d=f"M{low:.1f} {middle - 4:.1f}v8m0 -4H{high:.1f}m0 -4v8",
            class_="range",
        )
        furthest = max(furthest, high)
    if row.mark is not None and is_plottable(row.mark):
        x = scale.at(row.mark)
        yield svg.tag("path", d=f"M{x:.1f} {top - 1:.1f}v{_BAR + 6:.1f}", class_="mark")
        furthest = max(furthest, x)
    words = svg.cut(row.words or number(value), svg.WIDTH - furthest - 8)
    yield svg.label(words, furthest + 6, middle + 4)


def _told(rows: Sequence[PlotBar], unit: str) -> str:
    told = [
        f"{row.label}: {row.words or number(row.value)}"
        if row.value is not None and is_plottable(row.value)
        else f"{row.label}: {row.words or 'no figure'}"
        for row in rows
    ]
    return f"In {unit}. " + "; ".join(told)
