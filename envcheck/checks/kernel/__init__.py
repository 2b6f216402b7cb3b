"""Checks on the kernel side of the driver: module, device nodes, log."""

from __future__ import annotations

from ..registry import MACHINE, Area

AREA = Area(
    name="kernel",
    title="Kernel",
    position=30,
    needs=MACHINE | {"cuda"},
)
