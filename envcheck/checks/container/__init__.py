"""Checks on container engines: do they answer, and can they hand out GPUs."""

from __future__ import annotations

from ..registry import Area

AREA = Area(
    name="container",
    title="Containers",
    position=60,
)
