"""Checks on environment variables."""

from __future__ import annotations

from ..registry import MACHINE, TARGET, Area

AREA = Area(
    name="environment",
    title="Environment",
    position=120,
    needs=MACHINE | TARGET | {"cuda"},
    of_target=True,
)

# Narrower, for checks that ask no framework.
VARIABLES_ALONE = MACHINE | {"cuda", "interpreter", "environment", "packages"}
