"""Checks on a container seen from both sides: what the host has, and what came through."""

from __future__ import annotations

from ..registry import MACHINE, Area

AREA = Area(
    name="boundary",
    title="Boundary",
    position=70,
    needs=MACHINE | {"cuda", "containers", "interpreter", "environment"},
    of_target=True,
)
