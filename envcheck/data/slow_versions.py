"""Versions of frameworks that are known to be slow at something: slow_versions.csv."""

from __future__ import annotations

import msgspec
from packaging.version import Version

from . import rows


class SlowVersions(msgspec.Struct, frozen=True):
    """without: the first release in which it was not seen any more."""

    framework: str
    since: Version
    before: Version
    what: str
    without: str
    source: str


def slow_versions(framework: str, version: Version) -> list[SlowVersions]:
    every = rows("slow_versions", SlowVersions)
    return [
        row for row in every if row.framework == framework and row.since <= version < row.before
    ]
