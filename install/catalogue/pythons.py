"""What an environment of each Python gets beside its stack: pip, and what an old pip builds with.

The newest pip that runs on this Python: the one that a Python brings itself is never used.
"""

from __future__ import annotations

import msgspec

from ...data import rows


class Python(msgspec.Struct, frozen=True):
    """A row of seeds.csv."""

    version: str  # "3.6"
    packages: tuple[str, ...]  # exactly pinned: "pip==21.3.1"


def seed(minor: str) -> list[str]:
    """What an environment of this Python ("3.6") gets, as requirements for the lock.

    A Python that the table does not have yet gets the newest pip that is for it.
    """
    table = rows("seeds", Python)
    return next((list(row.packages) for row in table if row.version == minor), ["pip"])
