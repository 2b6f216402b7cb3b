"""Checks on pip's and uv's configuration."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="config", title="pip and uv", position=80, of_target=True)
