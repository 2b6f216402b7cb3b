"""Checks on container engines and NVIDIA's container toolkit."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="container", title="Containers", position=60)
