"""Which CUDA toolkits make code for a compute capability: from ``capabilities.csv``."""

from __future__ import annotations

import msgspec

from . import rows


class Capability(msgspec.Struct, frozen=True):
    """One compute capability; the CUDA versions are "" where no source was seen or none is the last."""

    compute_capability: str  # "9.0"
    architecture: str  # "Hopper"
    first_cuda: str  # the oldest toolkit that makes code for it: "11.8"
    last_cuda: str  # the newest that does, where a newer one dropped it: "12.9"
    source: str


def capability(compute_capability: str) -> Capability | None:
    """What the table knows of a compute capability ("9.0"); None where it does not have it."""
    wanted = compute_capability.strip()
    every = rows("capabilities", Capability)
    return next((row for row in every if row.compute_capability == wanted), None)
