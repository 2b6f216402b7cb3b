"""From values to places on an axis, and to the numbers that stand beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

# Beyond these nothing that is measured lies, and sums of them are numbers still.
_MOST, _LEAST = 1e15, 1e-12
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


def is_plottable(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and abs(value) <= _MOST


class Axis(NamedTuple):
    """Values between ``low`` and ``high``, and the places ``start`` and ``end`` that they lie between."""

    low: float
    high: float
    start: float
    end: float
    ticks: list[float]

    def words(self, tick: float) -> str:
        """A tick's number, with as many decimals as tell it from its neighbours."""
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else 0.0
        if step >= 1e5 or step < 1e-4:
            return number(tick)
        decimals = next((n for n in range(5) if abs(step - round(step, n)) < step * 1e-3), 5)
        return f"{tick:,.{decimals}f}".replace("-0", "0") if tick == 0 else f"{tick:,.{decimals}f}"

    def at(self, value: float) -> float:
        """Its place; at an end where it lies beyond."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))


def axis(
    values: Iterable[float],
    start: float,
    end: float,
    *,
    from_zero: bool = False,
    tight: bool = False,
) -> Axis:
    """An axis that holds all values, between round numbers; ``tight``: from the least to the most."""
    known = [0.0 if abs(v) < _LEAST else v for v in values if is_plottable(v)] or [0.0, 1.0]
    low, high = min(known), max(known)
    if from_zero:
        low, high = min(0.0, low), max(0.0, high)
    if high - low <= abs(high) * 1e-9:
        low, high = (low, low + 1) if low == 0 else (low - abs(low) * 0.05, high + abs(high) * 0.05)
    step = _step((high - low) / 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    ticks = [number * step for number in range(first, last + 1)]
    if tight:
        return Axis(low, high, start, end, [tick for tick in ticks if low <= tick <= high])
    return Axis(ticks[0], ticks[-1], start, end, ticks)


def number(value: float) -> str:
    """ "1,309", "12.5", "0.031", "1.2 M": about three digits that count."""
    size = abs(value)
    if size >= 1e6:
        for divisor, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
            if size >= divisor:
                return f"{value / divisor:,.3g} {name}" if size < 1e15 else f"{value:.3g}"
    if size >= 100 or size == 0:
        return f"{value:,.0f}"
    return f"{value:.3g}" if size >= 1e-4 else f"{value:.1e}"


def time_unit(span: float) -> tuple[float, str]:
    """The unit in which a span of seconds is told, in seconds, and its name."""
    if span >= 3 * _DAY:
        return _DAY, "days"
    if span >= 3 * _HOUR:
        return _HOUR, "h"
    return (_MINUTE, "min") if span >= 5 * _MINUTE else (1.0, "s")


def _step(about: float) -> float:
    """A round number near it."""
    power = 10.0 ** math.floor(math.log10(about))
    return next(step * power for step in _STEPS if step * power >= about * 0.999)
