"""What all-reduces of NCCL have reached between the GPUs of one machine, from ``nccl_reference.csv``."""

from __future__ import annotations

import msgspec

from . import rows
from .products import named


class Reached(msgspec.Struct, frozen=True, rename={"gb_s": "bus_gb_s"}):
    """Bus bandwidth in GB/s, with how many MiB, and who says so."""

    gpu: str  # the key of products.csv
    gpus: int
    size_mib: int
    algorithm: str
    gb_s: float
    kind: str
    source: str


def measured(name: str, gpus: int, size_mib: int, algorithm: str) -> Reached | None:
    """What so many of these GPUs reached with that size by that algorithm."""
    wanted = getattr(named(name), "gpu", ""), gpus, size_mib, algorithm
    every = rows("nccl_reference", Reached)
    return next(
        (row for row in every if (row.gpu, row.gpus, row.size_mib, row.algorithm) == wanted), None
    )
