"""Checks on single GPUs, and what joins them."""

from __future__ import annotations

from ..registry import MACHINE, Area

AREA = Area(
    name="gpu",
    title="GPUs",
    position=50,
    needs=MACHINE | {"cuda"},
)
