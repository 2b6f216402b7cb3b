"""Checks on a container seen from both sides: what the host has, and what came through."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="boundary", title="Boundary", position=70, of_target=True)
