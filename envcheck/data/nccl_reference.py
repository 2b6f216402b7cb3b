"""What all-reduces of NCCL have reached between the GPUs of one machine, from ``nccl_reference.csv``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from . import table


class Reached(NamedTuple):
    """Bus bandwidth in GB/s, with how many MiB, and who says so."""

    gb_s: float
    size_mib: int
    source: str


@lru_cache(maxsize=64)
def measured(name: str, gpus: int, size_mib: int, algorithm: str) -> Reached | None:
    """What so many of these GPUs reached with that size by that algorithm."""
    found = [row for row in _rows(name, gpus, "measured") if row.size_mib == size_mib]
    return next((row.reached for row in found if row.algorithm == algorithm), None)


@lru_cache(maxsize=64)
def pass_line(name: str, gpus: int) -> Reached | None:
    """Below which an operator takes a machine with so many of these GPUs out of service."""
    return next((row.reached for row in _rows(name, gpus, "pass line")), None)


class ReachedRow(NamedTuple):
    size_mib: int
    algorithm: str
    reached: Reached


def _rows(name: str, gpus: int, kind: str) -> list[ReachedRow]:
    return [
        ReachedRow(
            int(row["size_mib"]),
            row["algorithm"],
            Reached(float(row["bus_gb_s"]), int(row["size_mib"]), row["source"]),
        )
        for row in table("nccl_reference")
        if row["kind"] == kind
        and int(row["gpus"]) == gpus
        and re.search(row["gpu"], name.strip()) is not None
    ]
