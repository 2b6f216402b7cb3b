"""The rates of a profile: what a healthy machine reached, under what, and what is less than that.

Each is a table ``[[rates]]`` with the name of a measurement. ``at_least`` and ``at_most`` are judged, for
figures that were measured under the same circumstances (``under``; left out: any); the others say where it
comes from.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

from ..facts.profile import Wanted

RATES = "rates"
NAME, UNDER, AT_LEAST, AT_MOST = "name", "under", "at_least", "at_most"
MEDIAN, SPREAD, UNIT = "median", "spread", "unit"
FIGURES, MACHINES = "figures", "machines"
TEXTS = (NAME, UNDER, UNIT)
NUMBERS = (AT_LEAST, AT_MOST, MEDIAN, SPREAD, FIGURES, MACHINES)


class WantedRate(NamedTuple):
    """What a table of ``[[rates]]`` says."""

    name: str
    under: str | None
    at_least: float | None
    at_most: float | None
    median: float | None
    machines: int | None


def mistake(table: dict[str, Any]) -> tuple[str, str]:
    """(key, the end of a sentence) of what is wrong with a table; ("", "") where nothing is."""
    for key, value in table.items():
        if key in TEXTS and not isinstance(value, str):
            return key, "it must be text in quotes"
        if key in NUMBERS and not is_number(value):
            return key, "it must be a number"
    if not table.get(NAME):
        return NAME, "it must name a rate, such as kernels.L0.fp16"
    if AT_LEAST not in table and AT_MOST not in table:
        return NAME, "it has neither at_least nor at_most"
    return "", ""


def is_number(value: Any) -> bool:
    whole = isinstance(value, (int, float)) and not isinstance(value, bool)
    return whole and abs(value) < 1e300 and isfinite(value)


def wanted_rate(table: dict[str, Wanted]) -> WantedRate:
    def number(key: str) -> float | None:
        value = table[key].value if key in table else None
        return float(value) if isinstance(value, (int, float)) else None

    machines = number(MACHINES)
    return WantedRate(
        name=str(table[NAME].value),
        under=str(table[UNDER].value) if UNDER in table else None,
        at_least=number(AT_LEAST),
        at_most=number(AT_MOST),
        median=number(MEDIAN),
        machines=None if machines is None else int(machines),
    )
