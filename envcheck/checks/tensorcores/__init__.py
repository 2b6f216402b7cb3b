"""Checks on Tensor Cores: did they do the work."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="tensorcores", title="Tensor Cores", position=130)
