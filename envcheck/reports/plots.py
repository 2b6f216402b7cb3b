"""Plots as SVG: bars, and lines over time or steps. Their places are computed here, templates draw them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from .html import part, width_of

WIDTH = 760.0  # in units of the plot's own: a page scales it
# How the strokes of curves are broken, so that they differ without a colour, too.
DASHES = ("none", "8 3", "2 3", "8 3 2 3", "14 4", "5 5", "2 6", "10 3 2 3 2 3")

# No measured value is beyond these, and sums of them are still finite.
_MOST, _LEAST = 1e15, 1e-12
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_UNITS = (("days", 86400.0, 3), ("h", 3600.0, 3), ("min", 60.0, 5))  # from how many on
_ROW, _TOP, _BAR = 26.0, 30.0, 14.0
_LABEL, _VALUE = 250.0, 130.0  # room for the words before and after a bar
_LEFT, _ABOVE, _RIGHT, _HEIGHT, _BELOW = 64.0, 42.0, 130.0, 200.0, 40.0
_CURVES, _POINTS = 16, 300

Point = tuple[float, float | None]  # None: no value, and the curve is broken here


class PlotBar(msgspec.Struct, frozen=True, kw_only=True):
    """``value``: None where there is none, and ``words`` say why. least, most: of what was measured.
    mark: a figure that the bar is compared with. colour: bars of one kind have one."""

    label: str
    value: float | None = None
    words: str = ""  # after the bar; its value where empty
    least: float | None = None
    most: float | None = None
    mark: float | None = None
    colour: int = 0


class Curve(NamedTuple):
    name: str
    points: Sequence[Point]  # from left to right


class _DrawnCurve(msgspec.Struct):
    name: str
    path: str
    label_y: float
    colour: int
    dashes: str


class PlotLevel(NamedTuple):
    """A line from left to right: a reference, a limit."""

    value: float
    name: str


class Band(NamedTuple):
    """A stretch of time."""

    start: float
    end: float
    name: str = ""


class Axis(NamedTuple):
    """Values between ``low`` and ``high``, drawn between ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float
    ticks: list[float]

    def words(self, tick: float) -> str:
        """A tick's number, with as many decimals as distinguish it from its neighbours."""
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else 0.0
        if step >= 1e5 or step < 1e-4:
            return number(tick)
        decimals = next((n for n in range(5) if abs(step - round(step, n)) < step * 1e-3), 5)
        return f"{tick or 0.0:,.{decimals}f}"

    def at(self, value: float) -> float:
        """The place of a value; an end where it is beyond."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))


def axis(
    values: Iterable[float | None],
    start: float,
    end: float,
    *,
    from_zero: bool = False,
    tight: bool = False,
) -> Axis:
    """An axis with all values, between round numbers; ``tight``: from the least to the most."""
    known = [0.0 if abs(v) < _LEAST else v for v in map(plottable, values) if v is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    if from_zero:
        low, high = min(0.0, low), max(0.0, high)
    if high - low <= abs(high) * 1e-9:
        low, high = (low, low + 1) if low == 0 else (low - abs(low) * 0.05, high + abs(high) * 0.05)
    about = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(about))
    step = next(step * power for step in _STEPS if step * power >= about * 0.999)
    ticks = [n * step for n in range(math.floor(low / step), math.ceil(high / step) + 1)]
    if tight:
        return Axis(low, high, start, end, [tick for tick in ticks if low <= tick <= high])
    return Axis(ticks[0], ticks[-1], start, end, ticks)


def plottable(value: float | None) -> float | None:
    return value if value is not None and abs(value) <= _MOST else None


def number(value: float) -> str:
    """ "1,309", "12.5", "0.031", "1.2 M": about three significant digits."""
    size = abs(value)
    for divisor, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if divisor <= size < 1e15:
            return f"{value / divisor:,.3g} {name}"
    if 100 <= size < 1e6 or size == 0:
        return f"{value:,.0f}"
    return f"{value:.3g}" if size >= 1e-4 else f"{value:.1e}"


def time_unit(span: float) -> tuple[float, str]:
    """The unit for a span of seconds: its seconds, and its name."""
    found = ((size, name) for name, size, least in _UNITS if span >= least * size)
    return next(found, (1.0, "s"))


def bars(
    name: str, title: str, unit: str, rows: Sequence[PlotBar], *, mark: str = "", about: str = ""
) -> str:
    """An SVG. name: for ids, unique in the page. mark: what the lines across bars are."""
    rows = [_plottable_bar(row) for row in rows]
    left = min(_LABEL, max((width_of(row.label) for row in rows), default=0.0)) + 8
    values = [value for row in rows for value in (row.value, row.most, row.mark)]
    mark = mark if any(row.mark is not None for row in rows) else ""
    bottom = _TOP + _ROW * len(rows)
    summary = "; ".join(f"{row.label}: {row.words}" for row in rows)
    return part(
        "plots/bars.svg",
        name=name,
        title=title,
        about=about or f"In {unit}. {summary}",
        width=WIDTH,
        height=bottom + (56 if mark else 36),
        unit=unit,
        rows=rows,
        scale=axis(values, left, WIDTH - _VALUE, from_zero=True),
        left=left,
        top=_TOP,
        bottom=bottom,
        step=_ROW,
        thick=_BAR,
        mark=mark,
    )


def _plottable_bar(row: PlotBar) -> PlotBar:
    value = plottable(row.value)
    words = row.words or ("no figure" if value is None else number(value))
    return msgspec.structs.replace(
        row,
        value=value,
        words=words,
        least=plottable(row.least),
        most=plottable(row.most),
        mark=plottable(row.mark),
    )


def lines(
    name: str,
    title: str,
    unit: str,
    curves: Sequence[Curve],
    *,
    along: str = "",
    levels: Sequence[PlotLevel] = (),
    bands: Sequence[Band] = (),
    from_zero: bool = False,
) -> str:
    """An SVG. ``along``: what is on the horizontal axis; "": time, in seconds. name: for ids."""
    shown = [Curve(one.name, _plottable_points(one.points)) for one in curves[:_CURVES]]
    levels = [level for level in levels if plottable(level.value) is not None]
    bands = [one for one in bands if None not in (plottable(one.start), plottable(one.end))]
    points = [point for curve in shown for point in curve.points]
    times = [x for x, _ in points] or [0.0, 1.0]
    size, along = (1.0, along) if along else time_unit(max(times) - min(times))
    values = [y for _, y in points] + [level.value for level in levels]
    across = axis((x / size for x in times), _LEFT, WIDTH - _RIGHT, tight=True)
    up = axis(values, _ABOVE + _HEIGHT, _ABOVE, from_zero=from_zero)
    return part(
        "plots/lines.svg",
        name=name,
        title=title,
        about=f"In {unit}. " + "; ".join(filter(None, map(_in_words, shown))),
        width=WIDTH,
        height=_ABOVE + _HEIGHT + _BELOW,
        unit=unit,
        along=along,
        levels=levels,
        bands=bands,
        size=size,
        across=across,
        up=up,
        top=_ABOVE,
        tall=_HEIGHT,
        curves=_drawn(shown, across, up, size),
        more=max(0, len(curves) - _CURVES),
    )


def _plottable_points(points: Sequence[Point]) -> list[Point]:
    return thinned([(x, plottable(y)) for x, y in points if plottable(x) is not None])


def thinned(points: Sequence[Point], most: int = _POINTS) -> list[Point]:
    """About ``most`` points: of each stretch its least and its largest in their order, and both ends."""
    if len(points) <= most:
        return list(points)
    size = 2 * len(points) / most
    kept: list[Point] = [points[0]]
    for place in range(most // 2):
        stretch = points[max(1, int(place * size)) : min(len(points) - 1, int((place + 1) * size))]
        values = [(y, at) for at, (_, y) in enumerate(stretch) if y is not None]
        ends = sorted({min(values)[1], max(values)[1]}) if values else range(len(stretch[:1]))
        kept += [stretch[at] for at in ends]
    return [*kept, points[-1]]


def _drawn(curves: Sequence[Curve], across: Axis, up: Axis, size: float) -> list[_DrawnCurve]:
    """Each curve's path, and where its name stands: names that would overlap are moved apart."""
    drawn: list[_DrawnCurve] = []
    for place, curve in enumerate(curves):
        path, pen, last = "", "M", 0.0
        for x, y in curve.points:
            if y is not None:
                last = up.at(y)
                path += f"{pen}{across.at(x / size):.1f} {last:.1f}"
            pen = "M" if y is None else "L"
        if path:
            colour = place % len(DASHES)
            path += "" if "L" in path else "h3"
            drawn.append(_DrawnCurve(curve.name, path, last, colour, DASHES[colour]))
    lowest = _ABOVE
    ordered = sorted(drawn, key=lambda one: one.label_y)
    for one in ordered:
        one.label_y = max(one.label_y, lowest)
        lowest = one.label_y + 13
    beyond = max(0.0, lowest - 13 - (_ABOVE + _HEIGHT + 8))
    for one in ordered:
        one.label_y -= beyond
    return drawn


def _in_words(curve: Curve) -> str:
    values = [y for _, y in curve.points if y is not None]
    if not values:
        return ""
    first, last, least, most = map(number, (values[0], values[-1], min(values), max(values)))
    return f"{curve.name}: from {first} to {last}, between {least} and {most}"
