"""A rate over the whole fleet, as a strip: how many figures lie where, and where the odd ones are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....reports.plots.svg import tag, text

WIDTH, HEIGHT = 640, 74
_LEFT, _RIGHT = 14, WIDTH - 14
_FLOOR, _ROOF = 50, 18  # of the columns
_COLUMNS = 60
_LETTERED = 26


class Odd(NamedTuple):
    """An odd one's figure; letter: what stands at its mark and in the list below."""

    letter: str
    value: float


def letter(place: int) -> str:
    return chr(ord("A") + place) if place < _LETTERED else ""


def strip(title: str, values: Sequence[float], median: float, odd: Sequence[Odd], unit: str) -> str:
    """An SVG. values: all figures that can be compared; "" where there is nothing to draw."""
    every = [*values, median, *(one.value for one in odd)]
    low, high = min(every), max(every)
    if high <= low:
        return ""

    def across(value: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (value - low) / (high - low)

    counts = [0] * _COLUMNS
    for value in values:
        counts[min(int((value - low) / (high - low) * _COLUMNS), _COLUMNS - 1)] += 1
    highest = max(counts) or 1
    step = (_RIGHT - _LEFT) / _COLUMNS
    # A column with one figure among thousands is to be seen, too.
    columns = "".join(
        f"M{_LEFT + place * step + 0.7:.1f} {_FLOOR}v{-max((_FLOOR - _ROOF) * count / highest, 2.5):.1f}"
        f"h{step - 1.4:.1f}V{_FLOOR}z"
        for place, count in enumerate(counts)
        if count
    )
    middle = across(median)
    parts = [
        tag("path", d=columns, class_="figures"),
        tag("path", d=f"M{_LEFT} {_FLOOR + 0.5}H{_RIGHT}", class_="floor"),
        tag("path", d=f"M{middle:.1f} {_ROOF - 4}V{_FLOOR}", class_="median"),
        *(_mark(across(one.value), one.letter) for one in _apart(odd, across)),
        *_ends(low, median, high, middle, unit),
    ]
    return tag(
        "svg",
        tag("title", text(title)) + "".join(parts),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="strip",
        role="img",
        aria_label=title,
    )


def _apart(odd: Sequence[Odd], across: object) -> list[Odd]:
    """Their letters, but for those that would lie on another's."""
    told: list[Odd] = []
    last = -99.0
    for one in sorted(odd, key=lambda one: one.value):
        x = across(one.value)  # type: ignore[operator]
        told.append(one if x - last >= 12 else Odd("", one.value))
        last = x if told[-1].letter else last
    return told


def _mark(x: float, name: str) -> str:
    drawn = tag("path", d=f"M{x:.1f} {_FLOOR - 1}l-5 -9h10z", class_="odd")
    if name:
        drawn += tag("text", name, x=f"{x:.1f}", y=_FLOOR - 14, class_="odd", text_anchor="middle")
    return drawn


def _ends(low: float, median: float, high: float, middle: float, unit: str) -> list[str]:
    """The least, the median and the most, where they have room."""
    words = f"median {plain(median)} {unit}".strip()
    half = len(words) * 3.4
    centre = min(max(middle, _LEFT + half), _RIGHT - half)
    told = [tag("text", text(words), x=f"{centre:.1f}", y=HEIGHT - 6, text_anchor="middle")]
    least, most = plain(low), plain(high)
    if centre - half > _LEFT + len(least) * 7 + 10:
        told.append(tag("text", text(least), x=_LEFT, y=HEIGHT - 6, class_="quiet"))
    if centre + half < _RIGHT - len(most) * 7 - 10:
        told.append(
            tag("text", text(most), x=_RIGHT, y=HEIGHT - 6, class_="quiet", text_anchor="end")
        )
    return told


def plain(value: float) -> str:
    """Four digits, without an exponent."""
    whole = f"{value:.0f}"
    return f"{float(whole):,.0f}" if len(whole.lstrip("-")) >= 4 else f"{value:.4g}"
