"""Which versions of the CDI specification an engine's release accepts. Source: cdi_versions.csv."""

from __future__ import annotations

import re

from . import table


def rejected_from(engine: str, version: str) -> str | None:
    """The oldest CDI version that this release is known to reject ("0.7.0"); None where none is known."""
    row = _row(engine, version)
    return (row["rejects"] or None) if row else None


def rejects(engine: str, version: str, cdi: str) -> bool | None:
    """Whether this release rejects a specification of version ``cdi``; None where that is not known."""
    row, asked = _row(engine, version), _key(cdi)
    if row is None or not asked:
        return None
    if row["rejects"] and asked >= _key(row["rejects"]):
        return True
    if row["accepts"] and asked <= _key(row["accepts"]):
        return False
    return None


def _row(engine: str, version: str) -> dict[str, str] | None:
    key = _key(version)
    for row in table("cdi_versions"):
        first, below = _key(row["first"]), _key(row["below"])
        if row["engine"] == engine and key and first <= key and (not below or key < below):
            return row
    return None


def _key(version: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(part or 0) for part in found.groups()) if found else ()
