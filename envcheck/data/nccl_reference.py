"""What all-reduces of NCCL have reached between the GPUs of one machine, from ``nccl_reference.csv``."""

from __future__ import annotations

import msgspec

from . import rows
from .products import named


class Reached(msgspec.Struct, frozen=True, rename={"gb_s": "bus_gb_s"}):
    """Bus bandwidth in GB/s, with how many MiB, and who says so. kind: "measured" or "pass line"."""

    gpu: str  # the key of products.csv
    gpus: int
    size_mib: int
    algorithm: str
    gb_s: float
    kind: str
    source: str


def measured(name: str, gpus: int, size_mib: int, algorithm: str) -> Reached | None:
    """What so many of these GPUs reached with that size by that algorithm."""
    found = (row for row in _rows(name, gpus, "measured") if row.size_mib == size_mib)
    return next((row for row in found if row.algorithm == algorithm), None)


def pass_line(name: str, gpus: int) -> Reached | None:
    """Below which an operator takes a machine with so many of these GPUs out of service."""
    return next(iter(_rows(name, gpus, "pass line")), None)


def _rows(name: str, gpus: int, kind: str) -> list[Reached]:
    key = getattr(named(name), "gpu", "")
    every = rows("nccl_reference", Reached)
    return [row for row in every if (row.gpu, row.gpus, row.kind) == (key, gpus, kind)]
