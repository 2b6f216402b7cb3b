"""Checks on NVIDIA's libraries as the target really loads them."""

from __future__ import annotations

from ..registry import MACHINE, TARGET, Area

AREA = Area(
    name="libraries",
    title="Libraries",
    position=100,
    needs=MACHINE | TARGET | {"cuda"},
    of_target=True,
)
