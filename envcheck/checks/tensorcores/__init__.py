"""Checks on Tensor Cores: did they do the work."""

from __future__ import annotations

from ...findings.model import NO_KERNELS
from ..registry import Area

AREA = Area(
    name="tensorcores",
    title="Tensor Cores",
    position=130,
    section="micro_kernels",
    without=NO_KERNELS,
)
