"""Checks on the frameworks in the target."""

from __future__ import annotations

from ..registry import MACHINE, TARGET, Area

AREA = Area(
    name="framework",
    title="Framework",
    position=110,
    needs=MACHINE | TARGET | {"cuda"},
    of_target=True,
)
