"""Checks on the kernel side of the driver: module, device nodes, log."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="kernel", title="Kernel", position=30)
