"""The four states of a machine, and what makes one degraded: `data/degrading.csv`."""

from __future__ import annotations

from functools import cache
from typing import Literal

from ..data import table

# Worst first. broken: a check failed. degraded: it works, and is less than its product, its profile or its
# peers. silent: it did not answer, or a check that applies could not run. healthy: none of these; warnings
# are allowed.
State = Literal["broken", "degraded", "silent", "healthy"]


@cache
def _degrading() -> frozenset[tuple[str, str]]:
    return frozenset((row["check"], row["key"]) for row in table("degrading"))


def degrades(check: str, key: str) -> bool:
    """Whether a cause, by its check's code and its key, makes a machine less than it should be."""
    return (check, key) in _degrading()


def is_less(attribute: str, value: str, usual: str) -> bool:
    """Whether an attribute that differs from its peers' makes a machine less than these."""
    if not degrades("", attribute):
        return False
    here, there = _number(value), _number(usual)
    return value != "on" if here is None or there is None else here < there


def _number(value: str) -> float | None:
    """The number at the beginning: of "7 × NVIDIA H100", too; 0 of none at all."""
    first = next(iter(value.split()), "none")
    try:
        return 0.0 if first == "none" else float(first)
    except ValueError:
        return None
