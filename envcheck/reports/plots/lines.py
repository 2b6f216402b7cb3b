"""Lines over time or over steps: several curves, each named at its end, with levels and bands behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from . import svg
from .scale import Axis, axis, is_plottable, number, time_unit
from .thin import Point, thinned

_LEFT, _TOP, _RIGHT, _HEIGHT, _BELOW = 64.0, 42.0, 130.0, 200.0, 40.0
_CURVES = 16  # that a plot shows; with more it is one colour


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    points: list[Point]  # from left to right


class PlotLevel(msgspec.Struct, frozen=True):
    """A line from left to right: a reference, a limit."""

    value: float
    name: str


class Band(msgspec.Struct, frozen=True):
    """A stretch of time in which something was so, or ran."""

    start: float
    end: float
    name: str = ""


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
    about: str = "",
) -> str:
    """An SVG. ``along``: what is on the horizontal axis; "": time, in seconds; name: its own in the page."""
    shown = [_plottable(curve) for curve in curves[:_CURVES]]
    points = [point for curve in shown for point in curve.points]
    times = [x for x, _ in points] or [0.0, 1.0]
    size, of_time = (1.0, along) if along else time_unit(max(times) - min(times))
    values = [y for _, y in points if y is not None] + [level.value for level in levels]
    across = axis((x / size for x in times), _LEFT, svg.WIDTH - _RIGHT, tight=True)
    up = axis(values, _TOP + _HEIGHT, _TOP, from_zero=from_zero)
    parts = [*_bands(bands, across, size), *_axes(across, up, unit, of_time)]
    parts += _levels(levels, up)
    ends = []
    for place, curve in enumerate(shown):
        ends += _curve(curve, place, across, up, size, parts)
    parts += _names(ends, across.end)
    if len(curves) > _CURVES:
        parts.append(svg.label(f"and {len(curves) - _CURVES} more", across.end, 15, "quiet"))
    height = _TOP + _HEIGHT + _BELOW
    return svg.whole(name, title, about or _told(shown, unit), height, parts)


def _plottable(curve: Curve) -> Curve:
    kept = [(x, y if is_plottable(y) else None) for x, y in curve.points if is_plottable(x)]
    return Curve(name=curve.name, points=thinned(kept))


def _axes(across: Axis, up: Axis, unit: str, along: str) -> Iterator[str]:
    for tick in up.ticks:
        y = up.at(tick)
        yield svg.tag("path", d=f"M{across.start:.1f} {y:.1f}H{across.end:.1f}", class_="grid")
        yield svg.label(up.words(tick), across.start - 6, y + 4, "quiet", "end")
    for tick in across.ticks:
        x = across.at(tick)
        yield svg.tag("path", d=f"M{x:.1f} {up.start:.1f}v4", class_="grid")
        yield svg.label(across.words(tick), x, up.start + 17, "quiet", "middle")
    yield svg.label(unit, 0, _TOP - 11, "quiet")
    yield svg.label(along, (across.start + across.end) / 2, up.start + 34, "quiet", "middle")


def _bands(bands: Sequence[Band], across: Axis, size: float) -> Iterator[str]:
    for band in bands:
        if not is_plottable(band.start) or not is_plottable(band.end):
            continue
        left, right = across.at(band.start / size), across.at(band.end / size)
        yield svg.tag(
            "rect",
            tag_title(band.name),
            x=left,
            y=_TOP,
            width=max(1.0, right - left),
            height=_HEIGHT,
            class_="band",
        )
        if right - left > 3 * svg.CHARACTER:
            yield svg.label(
                svg.cut(band.name, right - left - 4), left + 3, _TOP + _HEIGHT - 5, "quiet"
            )


def tag_title(words: str) -> str:
    """What is shown where a pointer rests; nothing without words."""
    return svg.tag("title", svg.text(words)) if words else ""


def _levels(levels: Sequence[PlotLevel], up: Axis) -> Iterator[str]:
    for level in levels:
        if is_plottable(level.value):
            y = up.at(level.value)
            yield svg.tag(
                "path", d=f"M{_LEFT:.1f} {y:.1f}H{svg.WIDTH - _RIGHT:.1f}", class_="level"
            )
            words = svg.cut(level.name, svg.WIDTH - _RIGHT - _LEFT - 8)
            yield svg.label(words, _LEFT + 4, y - 4, "quiet")


def _curve(
    curve: Curve, place: int, across: Axis, up: Axis, size: float, parts: list[str]
) -> list[tuple[float, str, int]]:
    """Draws it; where it ends, its name and its place among the colours. Nothing without a point."""
    path: list[str] = []
    pen, last = "M", None
    for x, y in curve.points:
        if y is None:
            pen = "M"
            continue
        last = up.at(y)
        path.append(f"{pen}{across.at(x / size):.1f} {last:.1f}")
        pen = "L"
    if last is None:
        return []
    colour = place % len(svg.DASHES)
    single = len(path) == 1
    parts.append(
        svg.tag(
            "path",
            tag_title(curve.name),
            d="".join(path) + ("h3" if single else ""),
            class_=f"curve c{colour}",
            stroke_dasharray=svg.DASHES[colour],
        )
    )
    return [(last, curve.name, colour)]


def _names(ends: list[tuple[float, str, int]], x: float) -> Iterator[str]:
    """The curves' names at their ends, moved apart where they would lie over each other."""
    room = svg.WIDTH - x - 34
    places: list[float] = []
    ordered = sorted(ends, key=lambda end: end[0])
    for y, _, _ in ordered:
        places.append(max(y, places[-1] + svg.LINE - 3) if places else max(y, _TOP))
    beyond = places[-1] - (_TOP + _HEIGHT + 8) if places else 0.0
    for (_, name, colour), y in zip(ordered, places, strict=True):
        y -= max(0.0, beyond)
        yield svg.tag(
            "path",
            d=f"M{x + 4:.1f} {y:.1f}h22",
            class_=f"curve c{colour}",
            stroke_dasharray=svg.DASHES[colour],
        )
        yield svg.label(svg.cut(name, room), x + 30, y + 4)


def _told(curves: Sequence[Curve], unit: str) -> str:
    told = []
    for curve in curves:
        values = [y for _, y in curve.points if y is not None]
        if values:
            first, last = number(values[0]), number(values[-1])
            told.append(f"{curve.name}: from {first} to {last}, {number(min(values))} at the least")
            told[-1] += f" and {number(max(values))} at the most"
    return f"In {unit}. " + "; ".join(told)
