"""What has become of a version since it was installed: what its user's pip did, or damage."""

from __future__ import annotations

from typing import NamedTuple

from . import outside
from .layout import Version


class Condition(NamedTuple):
    usable: bool  # all of it is there, but for what a package manager changed
    changes: list[str]  # what differs, in sentences
    drifted: bool  # packages of the lock have another version, or are gone


def of(version: Version) -> Condition:
    """Compare it with what was installed."""
    difference = outside.compare(version)
    told = difference.sentences()
    if not told or version.is_container:
        return Condition(difference.intact, told, False)
    from .. import drift

    found = drift.of(version.directory)
    paths = [*difference.missing, *difference.changed]
    damaged = drift.unexplained(version.directory, found, paths)
    sound = not (damaged or difference.unreadable or difference.outside)
    drifted = bool(found.changed or found.removed)
    if sound:
        return Condition(True, found.sentences() or told, drifted)
    return Condition(False, [*found.sentences(), *told], drifted)
