"""What distributions need and their metadata does not say."""

from __future__ import annotations

from functools import lru_cache

from . import table
from .versions import parse_version


@lru_cache(maxsize=1024)
def unstated(name: str, version: str) -> tuple[tuple[str, str], ...]:
    """(requirement, what fails without it) of a release; "{minor}" is its own "2.11"."""
    from packaging.specifiers import SpecifierSet  # here: it takes 20 ms

    has = parse_version(version)
    if has is None:
        return ()
    minor = ".".join(map(str, has.release[:2]))
    return tuple(
        (row["requires"].format(minor=minor), row["consequence"].format(minor=minor))
        for row in table("unstated_requirements")
        if row["name"] == name and SpecifierSet(row["versions"]).contains(has.public, True)
    )
