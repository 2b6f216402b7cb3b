"""Curves over time as SVG: their places are computed here, a template draws them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .html import part

WIDTH = 760.0  # in units of the plot's own: a page scales it
# How the strokes of curves are broken, so that they differ without a colour, too.
DASHES = ("none", "8 3", "2 3", "8 3 2 3", "14 4", "5 5", "2 6", "10 3 2 3 2 3")

# No measured value is beyond it, and sums of such values are still finite.
_MOST = 1e15
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_UNITS = (("days", 86400.0, 3), ("h", 3600.0, 3), ("min", 60.0, 5), ("s", 1.0, 0))  # from how many
_LEFT, _ABOVE, _RIGHT, _HEIGHT, _BELOW = 64.0, 42.0, 130.0, 200.0, 40.0
_CURVES, _POINTS = 16, 300

Point = tuple[float, float | None]  # seconds; None: no value, and the curve is broken here


class Curve(NamedTuple):
    name: str
    points: Sequence[Point]  # from left to right


class _Drawn(NamedTuple):
    name: str
    path: str
    label: float  # the height of its name
    colour: int
    dashes: str


class Axis(NamedTuple):
    """Values between ``low`` and ``high``, drawn between ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float
    ticks: list[float]

    def at(self, value: float) -> float:
        """The place of a value; an end where it is beyond."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))


def axis(values: Iterable[float], start: float, end: float, *, tight: bool = False) -> Axis:
    """An axis with all values, between round numbers; ``tight``: from the least to the most."""
    known = list(values) or [0.0, 1.0]
    low, high = min(known), max(known)
    if high - low <= max(abs(high) * 1e-9, 1e-12):
        low, high = low - abs(low) * 0.05, high + (abs(high) * 0.05 or 1.0)
    about = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(about))
    step = next(step * power for step in _STEPS if step * power >= about * 0.999)
    ticks = [n * step for n in range(math.floor(low / step), math.ceil(high / step) + 1)]
    if tight:
        return Axis(low, high, start, end, [tick for tick in ticks if low <= tick <= high])
    return Axis(ticks[0], ticks[-1], start, end, ticks)


def lines(name: str, title: str, unit: str, curves: Sequence[Curve]) -> str:
    """An SVG. name: for ids, unique in the page."""
    shown = [Curve(one.name, thinned(_plottable(one.points))) for one in curves[:_CURVES]]
    times = [x for curve in shown for x, _ in curve.points] or [0.0, 1.0]
    span = max(times) - min(times)
    along, size, _ = next(one for one in _UNITS if span >= one[1] * one[2])
    values = [y for curve in shown for _, y in curve.points if y is not None]
    across = axis((x / size for x in times), _LEFT, WIDTH - _RIGHT, tight=True)
    up = axis(values, _ABOVE + _HEIGHT, _ABOVE)
    return part(
        "lines.svg",
        name=name,
        title=title,
        about=f"In {unit}. " + "; ".join(filter(None, map(_in_words, shown))),
        width=WIDTH,
        height=_ABOVE + _HEIGHT + _BELOW,
        unit=unit,
        along=along,
        across=across,
        up=up,
        curves=_drawn(shown, across, up, size),
        more=max(0, len(curves) - _CURVES),
    )


def _plottable(points: Sequence[Point]) -> list[Point]:
    return [
        (x, y if y is not None and abs(y) <= _MOST else None) for x, y in points if abs(x) <= _MOST
    ]


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


def _drawn(curves: Sequence[Curve], across: Axis, up: Axis, size: float) -> list[_Drawn]:
    """Each curve's path; the names stand below each other, in the order of the curves' ends."""
    paths: list[tuple[float, str, str]] = []
    for curve in curves:
        path, pen, last = "", "M", 0.0
        for x, y in curve.points:
            if y is not None:
                last = up.at(y)
                path += f"{pen}{across.at(x / size):.1f} {last:.1f}"
            pen = "M" if y is None else "L"
        if path:
            paths.append((last, curve.name, path + ("" if "L" in path else "h3")))
    step = min(13.0, _HEIGHT / max(1, len(paths)))
    return [
        _Drawn(name, path, _ABOVE + step * place, place % len(DASHES), DASHES[place % len(DASHES)])
        for place, (_last, name, path) in enumerate(sorted(paths, key=lambda one: one[0]))
    ]


def _in_words(curve: Curve) -> str:
    values = [y for _, y in curve.points if y is not None]
    if not values:
        return ""
    ends = values[0], values[-1], min(values), max(values)
    first, last, least, most = (f"{value:.4g}" for value in ends)
    return f"{curve.name}: from {first} to {last}, between {least} and {most}"
