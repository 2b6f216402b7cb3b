"""How the packages of an installed version differ from its record: what its user's pip has done since.

The names of ``.dist-info`` directories say which packages and versions are there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from .layout import Version

_NAMED = 8  # packages that a sentence names
_NAME = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._]*)-(?P<version>[0-9][^-]*)\.(dist|egg)-info")


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """By normalised names."""

    added: dict[str, str] = {}
    changed: dict[str, tuple[str, str]] = {}  # (as recorded, there now)
    removed: dict[str, str] = {}  # as recorded

    def sentences(self) -> list[str]:
        """ "added since: rich 15.0.0, six 1.17.0", and so on."""
        changed = {name: f"{now} (locked: {was})" for name, (was, now) in self.changed.items()}
        kinds = {"added": self.added, "changed": changed, "removed": self.removed}
        return [f"{kind} since: {some(of)}" for kind, of in kinds.items() if of]


def of(version: Version, recorded: Mapping[str, str]) -> Drift:
    """recorded: name → version, as the version's record has them."""
    there = installed(version)
    both = recorded.keys() & there.keys()
    return Drift(
        added={name: there[name] for name in sorted(there.keys() - both)},
        changed={
            name: (recorded[name], there[name])
            for name in sorted(both)
            if not _same(recorded[name], there[name])
        },
        removed={name: recorded[name] for name in sorted(recorded.keys() - both)},
    )


def installed(version: Version) -> dict[str, str]:
    """The packages of an environment of wheels, by normalised name."""
    found = {}
    for folder in version.directory.glob("lib/python*/site-packages/*-info"):
        if one := _NAME.fullmatch(folder.name):
            found[re.sub(r"[-_.]+", "-", one["name"]).lower()] = one["version"]
    return found


def some(packages: Mapping[str, str]) -> str:
    """ "a 1, b 2 and 3 more"."""
    listed = [f"{name} {version}" for name, version in packages.items()]
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


def _same(one: str, other: str) -> bool:
    from ...data.versions import parse_version

    return one == other or parse_version(one) == parse_version(other) is not None
