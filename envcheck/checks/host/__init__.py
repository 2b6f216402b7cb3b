"""Checks on the host: hardware, system, disks, limits."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="host", title="Host", position=10)
