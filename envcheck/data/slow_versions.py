"""Versions of frameworks that are known to be slow at something: slow_versions.csv."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from packaging.version import Version

from . import table


class SlowVersions(NamedTuple):
    framework: str
    since: Version
    before: Version
    what: str
    without: str  # the first release in which it was not seen any more
    source: str


def slow_versions(framework: str, version: Version) -> tuple[SlowVersions, ...]:
    return tuple(
        row for row in _rows() if row.framework == framework and row.since <= version < row.before
    )


@cache
def _rows() -> tuple[SlowVersions, ...]:
    return tuple(
        SlowVersions(
            row["framework"],
            Version(row["since"]),
            Version(row["before"]),
            row["what"],
            row["without"],
            row["source"],
        )
        for row in table("slow_versions")
    )
