"""Checks on acceleration systems: whether each, once switched on, does anything."""

from __future__ import annotations

from ...findings.model import DEEPER
from ..registry import Area

AREA = Area(
    name="acceleration",
    title="Acceleration",
    position=140,
    section="acceleration",
    without=DEEPER,
)
