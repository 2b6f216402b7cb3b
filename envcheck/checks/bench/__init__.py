"""Checks on a bench: whether rows engaged, ran to their end, and were as fast as they should be."""

from __future__ import annotations

from ...findings.model import BENCH
from ..registry import Area

AREA = Area(
    name="bench",
    title="Bench",
    position=142,
    section="bench",
    without=BENCH,
)
