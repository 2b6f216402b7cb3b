"""Checks on NVIDIA's libraries as the target really loads them."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="libraries", title="Libraries", position=100, of_target=True)
