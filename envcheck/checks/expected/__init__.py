"""Checks that hold a machine against a profile of somebody's own (`envcheck doctor --expect FILE`)."""

from __future__ import annotations

from ..registry import Area

AREA = Area(
    name="expected",
    title="Profile",
    position=125,
)
