"""How the packages of an installed version differ from its lock: what somebody's pip has done since."""

from __future__ import annotations

import csv
import json
import posixpath
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from ..exit_codes import UsageError
from . import pylock

_NAMED = 8  # packages that a sentence names

# Of an environment itself, and not of a package's: paths relative to it, or beginnings of them.
_OWN = ("pyvenv.cfg", "pip.conf", "bin/python", "bin/activate")


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """By normalised names; versions as the packages' own METADATA has them."""

    added: dict[str, str] = {}
    changed: dict[str, tuple[str, str]] = {}  # (locked, there now)
    removed: dict[str, str] = {}  # as locked
    wanted: list[
        str
    ] = []  # of those added, the ones that were asked for by name, as far as pip notes it
    elsewhere: dict[str, str] = {}  # of those added, the URL of each that is from no index

    def sentences(self) -> list[str]:
        """ "added since: rich 15.0.0, six 1.17.0", and so on; none where nothing differs."""
        added = [f"{name} {version}" for name, version in self.added.items()]
        changed = [f"{n} {now} (locked: {was})" for n, (was, now) in self.changed.items()]
        removed = [f"{name} {version}" for name, version in self.removed.items()]
        kinds = (("added since", added), ("changed since", changed), ("removed since", removed))
        return [f"{kind}: {some(what)}" for kind, what in kinds if what]


def of(directory: Path) -> Drift:
    """Of the version in that directory; nothing for one without a lock, or with one that cannot be read."""
    try:
        lock = pylock.read(directory / ".envcheck" / "pylock.toml")
    except UsageError:
        return Drift()
    locked = {package.name: package.version for package in lock.packages}
    found = installed(directory)
    versions = {name: str(one.version) for name, one in found.items()}
    added = {name: version for name, version in versions.items() if name not in locked}
    changed = {
        name: (locked[name], version)
        for name, version in versions.items()
        if name in locked and not _same(locked[name], version)
    }
    removed = {name: version for name, version in locked.items() if name not in versions}
    asked_for = [name for name in added if found[name].read_text("REQUESTED") is not None]
    elsewhere = {name: url for name in added if (url := _direct_url(found[name]))}
    return Drift(
        added=dict(sorted(added.items())),
        changed=dict(sorted(changed.items())),
        removed=dict(sorted(removed.items())),
        wanted=sorted(asked_for or added),
        elsewhere=elsewhere,
    )


def unexplained(directory: Path, drift: Drift, paths: Iterable[str]) -> list[str]:
    """Those of the paths (relative, missing or changed) that belong to the environment itself or to a package
    that is as locked: no package manager did that."""
    if not drift.changed and not drift.removed:
        return list(paths)
    differs = {*drift.added, *drift.changed}
    kept: set[str] = set()
    for name, one in installed(directory).items():
        if name not in differs:
            folder = str(one.locate_file("")).removeprefix(f"{directory}/")
            kept |= {posixpath.normpath(posixpath.join(folder, name)) for name in _recorded(one)}
    return [path for path in paths if path in kept or path.startswith(_OWN)]


def some(names: Iterable[str], most: int = _NAMED) -> str:
    """ "a 1, b 2 and 3 more"."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def installed(directory: Path) -> Mapping[str, Distribution]:
    """What is installed, by normalised name; what has no readable name is left out."""
    sites = sorted(str(path) for path in directory.glob("lib/python*/site-packages"))
    found: dict[str, Distribution] = {}
    for one in distributions(path=sites):
        there = one.metadata.json  # without the fields that are missing
        name, version = there.get("name"), there.get("version")
        if isinstance(name, str) and isinstance(version, str):
            found.setdefault(canonicalize_name(name), one)
    return found


def _recorded(one: Distribution) -> list[str]:
    """The paths in RECORD; ``files`` leaves out those that do not exist, from Python 3.12 on."""
    rows = csv.reader((one.read_text("RECORD") or "").splitlines())
    return [row[0] for row in rows if row]


def _same(one: str, other: str) -> bool:
    from ..data.versions import parse_version

    return one == other or parse_version(one) == parse_version(other) is not None


def _direct_url(one: Distribution) -> str:
    """Where a package is from that no index gave: a directory, a repository, a file."""
    try:
        told = json.loads(one.read_text("direct_url.json") or "{}")
    except ValueError:
        return ""
    url = told.get("url") if isinstance(told, dict) else None
    return url if isinstance(url, str) else ""
