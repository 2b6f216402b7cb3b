"""Checks on the frameworks in the target."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="framework", title="Framework", position=110, of_target=True)
