"""How hot a GPU's memory may be, where the board does not say it in degrees."""

from __future__ import annotations

from functools import cache

from . import table


@cache
def _limits() -> dict[str, int]:
    return {row["architecture"]: int(row["limit_c"]) for row in table("memory_temperatures")}


def memory_temperature_limit(architecture: str) -> int | None:
    """Degrees Celsius, by NVML's name of the architecture; None where it is not known."""
    return _limits().get(architecture)
