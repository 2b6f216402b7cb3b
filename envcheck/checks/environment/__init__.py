"""Checks on environment variables."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="environment", title="Environment", position=120)
