"""The rates that were measured on a machine, from a Snapshot alone."""

from __future__ import annotations

from ..facts.snapshot import Snapshot
from ..tensorcores.judge import judge
from .model import Measurement


def rates(snapshot: Snapshot) -> list[Measurement]:
    """What the micro-kernels reached, GPU by GPU."""
    return [
        Measurement(
            key=f"kernels.{row.level}.{row.mode}.{row.setting}",
            words=f"{row.mode.upper()} at {row.level}",
            value=row.tflops,
            unit="TFLOP/s",
            device="" if row.gpu is None or row.gpu.index is None else f"GPU {row.gpu.index}",
            under=f"{row.framework} {row.library}".strip(),
        )
        for row in judge(snapshot)
        if row.tflops is not None
    ]
