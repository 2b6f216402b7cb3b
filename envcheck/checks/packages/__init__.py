"""Checks on the target's installed packages."""

from __future__ import annotations

from ..registry import MACHINE, TARGET, Area

AREA = Area(
    name="packages",
    title="Packages",
    position=90,
    needs=MACHINE | TARGET | {"cuda"},
    of_target=True,
)

# Narrower, for checks that ask no framework.
LOCK_ALONE = frozenset(("host", "interpreter", "lock"))
PACKAGES_ALONE = frozenset(("host", "interpreter", "packages"))
