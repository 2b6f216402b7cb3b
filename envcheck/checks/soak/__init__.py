"""Checks on a soak: results that stayed the same, and GPUs that stayed as fast and cool as at first."""

from __future__ import annotations

from ...findings.model import SOAK
from ..registry import Area

AREA = Area(
    name="soak",
    title="Soak",
    position=145,
    section="soak",
    without=SOAK,
)
