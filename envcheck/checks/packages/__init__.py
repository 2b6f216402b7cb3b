"""Checks on the target's installed packages."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="packages", title="Packages", position=90, of_target=True)
