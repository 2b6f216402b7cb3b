"""Which frameworks compute in TF32 without being asked, and what switches it: tf32_defaults.csv."""

from __future__ import annotations

import msgspec
from packaging.version import Version

from . import rows


class Tf32Default(msgspec.Struct, frozen=True):
    name: str
    since: Version
    default: str
    switch: str
    source: str
    before: Version | None = None


def tf32_default(name: str, version: Version) -> Tf32Default | None:
    found = (row for row in rows("tf32_defaults", Tf32Default) if row.name == name)
    found = (row for row in found if row.before is None or version < row.before)
    return next((row for row in found if row.since <= version), None)
