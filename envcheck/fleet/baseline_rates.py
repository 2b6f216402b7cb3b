"""The rates of a baseline: what healthy machines of a product reach, and the bound that follows. Pure.

The bound lies below the median by four robust standard deviations (1.4826 times the median of all absolute
deviations), by what repetitions on one GPU are apart, or by 3 % (5 % of few figures), whichever is most; and
below every figure that was taken, so that no machine that was kept is too slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

from ..attributes import wanted_rates as rates
from ..attributes.model import Measurement
from ..attributes.profile_writing import pair, table
from ..attributes.registry import PRODUCTS
from .model import JudgedMachine

_DEVIATIONS = 4.0
_LEAST, _LEAST_OF_FEW = 0.03, 0.05
_FEW = 8  # figures
_MOST = 0.5
_ROUNDING = 1e-5  # to six digits, away from the figures
_LONGEST = 300


class RateBound(NamedTuple):
    bound: float
    median: float
    spread: float  # the robust standard deviation, as a share of the median


def rate_tables(machines: Iterable[JudgedMachine]) -> Iterator[str]:
    found: dict[tuple[str, str], list[tuple[str, Measurement]]] = {}
    for machine in machines:
        for one in machine.rates:
            found.setdefault((one.key, one.under), []).append((machine.name, one))
    for number, key in enumerate(sorted(found)):
        lines = _lines(found[key])
        comment = "Rates: figures of all machines and GPUs, under the same circumstances."
        yield table(f"[[{PRODUCTS}.{rates.RATES}]]", "" if number else comment, lines)


def _lines(figures: list[tuple[str, Measurement]]) -> list[str]:
    one = figures[0][1]
    if not all(
        text.isprintable() and len(text) <= _LONGEST for text in (one.key, one.under, one.unit)
    ):
        return []
    lower = one.lower_is_better
    if not one.key:
        return []
    found = bound([figure for _machine, figure in figures])
    bounded = rates.AT_MOST if lower else rates.AT_LEAST
    words = one.words if one.words.isprintable() else ""
    return [
        pair(rates.NAME, one.key, words[:_LONGEST]),
        pair(rates.UNDER, one.under, ""),
        pair(bounded, _rounded(found.bound), one.unit),
        pair(rates.MEDIAN, _rounded(found.median), ""),
        pair(rates.SPREAD, round(found.spread, 5), "a robust standard deviation, as a share of it"),
        pair(rates.FIGURES, len(figures), ""),
        pair(rates.MACHINES, len({machine for machine, _figure in figures}), ""),
    ]


def bound(figures: list[Measurement]) -> RateBound:
    values = [one.value for one in figures]
    middle = median(values)
    deviation = 1.4826 * median(abs(value - middle) for value in values) / middle
    apart = [one.spread for one in figures if one.spread is not None]
    floor = _LEAST if len(values) >= _FEW else _LEAST_OF_FEW
    share = min(_MOST, max(floor, _DEVIATIONS * deviation, median(apart) if apart else 0.0))
    if figures[0].lower_is_better:
        most = max(*values, middle * (1 + share)) if len(values) > 1 else middle * (1 + share)
        return RateBound(most * (1 + _ROUNDING), middle, deviation)
    return RateBound(min([*values, middle * (1 - share)]) * (1 - _ROUNDING), middle, deviation)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
