"""A rate over the whole fleet, as a strip: how many figures lie where, and where the outliers are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...reports.html import part

_WIDTH, _EDGE, _FLOOR, _ROOF = 640, 14, 50, 18
_COLUMNS, _LETTERS = 60, 26
_APART = 12  # units between two letters


class Mark(NamedTuple):
    """An outlier's figure; letter: what stands at its mark and in the list below."""

    letter: str
    value: float


def letter(place: int) -> str:
    return chr(ord("A") + place) if place < _LETTERS else ""


def strip(
    title: str, values: Sequence[float], median: float, marks: Sequence[Mark], unit: str
) -> str:
    """An SVG. values: all figures that can be compared; "" where there is nothing to draw."""
    every = [*values, median, *(one.value for one in marks)]
    low, high = min(every), max(every)
    if high <= low:
        return ""
    room = _WIDTH - 2 * _EDGE
    counts = [0] * _COLUMNS
    for value in values:
        counts[min(int((value - low) / (high - low) * _COLUMNS), _COLUMNS - 1)] += 1
    # A column with one figure among thousands is visible, too.
    heights = [
        max((_FLOOR - _ROOF) * count / (max(counts) or 1), 2.5) if count else 0 for count in counts
    ]
    drawn = []
    last = -99.0
    for one in sorted(marks, key=lambda one: one.value):
        x = _EDGE + room * (one.value - low) / (high - low)
        shown = one.letter if x - last >= _APART else ""
        last = x if shown else last
        drawn.append((x, shown))
    middle = _EDGE + room * (median - low) / (high - low)
    words = f"median {plain(median)} {unit}".strip()
    half = len(words) * 3.4
    centre = min(max(middle, _EDGE + half), _WIDTH - _EDGE - half)
    least, most = plain(low), plain(high)
    return part(
        "fleet/strip.svg",
        title=title,
        columns=[(_EDGE + place * room / _COLUMNS, high) for place, high in enumerate(heights)],
        step=room / _COLUMNS,
        edge=_EDGE,
        width=_WIDTH,
        floor=_FLOOR,
        middle=middle,
        marks=drawn,
        words=words,
        centre=centre,
        least=least if centre - half > _EDGE + len(least) * 7 + 10 else "",
        most=most if centre + half < _WIDTH - _EDGE - len(most) * 7 - 10 else "",
    )


def plain(value: float) -> str:
    """Four digits, without an exponent."""
    whole = f"{value:.0f}"
    return f"{float(whole):,.0f}" if len(whole.lstrip("-")) >= 4 else f"{value:.4g}"
