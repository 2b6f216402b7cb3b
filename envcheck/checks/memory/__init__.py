"""Checks on memory and links: what was written comes back, and as fast as it must."""

from __future__ import annotations

from ...findings.model import DEEPER
from ..registry import Area

AREA = Area(
    name="memory",
    title="Memory and links",
    position=135,
    section="acceleration",
    without=DEEPER,
)
