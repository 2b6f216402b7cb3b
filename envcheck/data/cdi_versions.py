"""Which versions of the CDI specification an engine's release accepts. Source: cdi_versions.csv."""

from __future__ import annotations

import msgspec
from packaging.version import Version

from . import rows
from .versions import release_of


class CdiVersions(msgspec.Struct, frozen=True):
    """The releases of an engine from ``first`` on: the newest version that they are known to accept, and the
    oldest that they are known to reject."""

    engine: str
    first: Version
    below: Version | None = None
    accepts: Version | None = None
    rejects: Version | None = None


def rejected_from(engine: str, version: str) -> str | None:
    """The oldest CDI version that this release is known to reject ("0.7.0"); None where none is known."""
    row = _row(engine, version)
    return None if row is None or row.rejects is None else str(row.rejects)


def rejects(engine: str, version: str, cdi: str) -> bool | None:
    """Whether this release rejects a specification of version ``cdi``; None where that is not known."""
    row, asked = _row(engine, version), release_of(cdi)
    if row is None or asked is None:
        return None
    if row.rejects is not None and asked >= row.rejects:
        return True
    return False if row.accepts is not None and asked <= row.accepts else None


def _row(engine: str, version: str) -> CdiVersions | None:
    found = release_of(version)
    if found is None:
        return None
    every = (row for row in rows("cdi_versions", CdiVersions) if row.engine == engine)
    since = (row for row in every if row.first <= found)
    return next((row for row in since if row.below is None or found < row.below), None)
