"""What an environment of each Python gets beside its stack: pip, and what an old pip builds with."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec


class Python(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of pythons.toml."""

    version: str  # "3.6"
    packages: list[str]  # exactly pinned: "pip==21.3.1"
    why: str
    source: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    python: list[Python]


@cache
def table() -> tuple[Python, ...]:
    """Every Python of pythons.toml, oldest first."""
    import tomli

    text = files(__package__).joinpath("pythons.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomli.loads(text), _File).python)


def seed(minor: str) -> list[str]:
    """What an environment of this Python ("3.6") gets, as requirements for the lock.

    A Python that the table does not have yet gets the newest pip that is for it.
    """
    return next((list(row.packages) for row in table() if row.version == minor), ["pip"])
