"""Checks that compare a machine with a profile (`envcheck doctor --expect FILE`)."""

from __future__ import annotations

from ..registry import Area

AREA = Area(
    name="expected",
    title="Profile",
    position=125,
    section="profile",
    without="no profile was given (--expect FILE)",
)
