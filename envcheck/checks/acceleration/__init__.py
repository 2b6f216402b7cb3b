"""Checks on acceleration systems: whether each, once switched on, does anything."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="acceleration", title="Acceleration", position=140)
