"""From where on a soak's figures are no chance."""

from __future__ import annotations

from functools import cache

from . import table


@cache
def _limits() -> dict[str, float]:
    return {row["name"]: float(row["value"]) for row in table("soak_limits")}


def soak_limit(name: str) -> float:
    return _limits()[name]
