"""Checks on single GPUs, and what joins them."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="gpu", title="GPUs", position=50)
