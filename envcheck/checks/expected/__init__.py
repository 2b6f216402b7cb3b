"""Checks that hold a machine against a profile of somebody's own (`envcheck doctor --expect FILE`)."""

from __future__ import annotations

from ...facts.target import FRAMEWORKS
from ..registry import MACHINE, Area

AREA = Area(
    name="expected",
    title="Profile",
    position=125,
    needs=MACHINE
    | {"containers", "cuda", "micro_kernels", "packages", "network"}
    | {"interpreter", "environment", "loader", *FRAMEWORKS},
)
