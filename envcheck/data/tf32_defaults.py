"""Which frameworks compute in TF32 without being asked, and what switches it: tf32_defaults.csv."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from packaging.version import Version

from . import table


class Tf32Default(NamedTuple):
    name: str
    since: Version
    before: Version | None
    default: str
    switch: str
    source: str


def tf32_default(name: str, version: Version) -> Tf32Default | None:
    found = (row for row in _rows() if row.name == name and row.since <= version)
    return next((row for row in found if row.before is None or version < row.before), None)


@cache
def _rows() -> tuple[Tf32Default, ...]:
    return tuple(
        Tf32Default(
            row["name"],
            Version(row["since"]),
            Version(row["before"]) if row["before"] else None,
            row["default"],
            row["switch"],
            row["source"],
        )
        for row in table("tf32_defaults")
    )
