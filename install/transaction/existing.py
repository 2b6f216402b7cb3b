"""What is installed already: what has become of it since, and whether it is what a request asks for."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..request import Request
from . import engine_images, file_list, guard, layout, record, roots
from .journal import ENDS, Journal
from .layout import Root, Version
from .record import Installed, Record

_NAMED = 8  # packages that a sentence names
_FOLDER = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._]*)-(?P<version>[0-9][^-]*)\.(dist|egg)-info"
)


class Condition(NamedTuple):
    """What has become of a version since it was installed."""

    usable: bool  # all of it is there, but for what a package manager changed
    changes: list[str]  # what differs, in sentences
    drifted: bool = False  # packages of the lock have another version, or are gone


def condition(version: Version) -> Condition:
    """Compare it with what was installed, in its directory and in its engine."""
    files = file_list.compare(version)
    if files.intact:  # an engine is asked only where the files do not answer it: that takes longer
        image = engine_images.trouble(version)
        return Condition(not image, [*filter(None, [image]), *files.sentences()])
    noted = None if version.is_container or files.unreadable else record.read(version)
    if noted is not None and version.python.exists():
        there = _packages(version)
        changed = [
            f"{name} {there.get(name, 'removed')} (locked: {number})"
            for name, number in noted.versions.items()
            if name not in there or _normal(there[name]) != _normal(number)
        ]
        if changed:
            more = f" and {len(changed) - _NAMED} more" if changed[_NAMED:] else ""
            return Condition(True, [f"changed since: {', '.join(changed[:_NAMED])}{more}"], True)
    return Condition(False, files.sentences())


def look(request: Request) -> Installed | None:
    """The environment that an equal request made, unless it is damaged; touches nothing.

    Equal means: the same request, of the same envcheck with the same catalogue and the same named files.
    Roots that another user may have prepared are skipped. Raises UsageError for a newer layout.
    """
    candidates = [layout.root_of(request, "")] if request.path else roots.known()
    found = [
        installed
        for root in candidates
        if (not request.path or guard.is_root(root.path))
        and guard.is_safe(root)
        and (installed := in_root(root, request))
    ]
    return max(found, key=lambda installed: installed.record.verified_at, default=None)


def in_root(root: Root, request: Request, digest: str = "") -> Installed | None:
    """The same for one root. digest: of the lock that the request has come to; then a version that is not in
    use is found, too."""
    current = root.current_id()
    for name in usable(root, Journal(root.journal)):
        version = root.version(name)
        noted = record.read(version) if digest or name == current else None
        if noted is None or not _serves(noted, request, digest):
            continue
        found = condition(version)
        if found.usable:
            return Installed(
                directory=str(root.path),
                version=name,
                prefix=str(root.current),
                already=True,
                before=current or "",
                record=noted,
                notes=found.changes,
                drifted=found.drifted,
            )
    return None


def usable(root: Root, journal: Journal) -> list[str]:
    """Every verified version that was finished: ``current`` first, then by when it was last in use."""
    entries = journal.entries()
    last = {entry.version: entry.step for entry in entries}
    used = {entry.version: n for n, entry in enumerate(entries) if entry.step == "swapped"}
    finished = [version for version in root.versions() if last.get(version.id, "done") in ENDS]
    verified = {v.id: noted.verified_at for v in finished if (noted := record.read(v))}
    current = root.current_id()
    return sorted(
        verified,
        key=lambda name: (name == current, used.get(name, -1), verified[name]),
        reverse=True,
    )


def _serves(noted: Record, request: Request, digest: str) -> bool:
    if digest:  # the lock says to the byte what is installed
        same = (noted.lock, noted.mode) == (digest, request.mode)
        return same and request.engine in ("", noted.engine)
    try:
        return noted.request == record.public(request) and noted.inputs == record.inputs(request)
    except OSError:  # a file that the request names is not there: whoever reads it says so
        return False


def _packages(version: Version) -> dict[str, str]:
    """The packages in an environment by normalised name, as the names of their folders have them."""
    found = {}
    for folder in version.directory.glob("lib/python*/site-packages/*-info"):
        if one := _FOLDER.fullmatch(folder.name):
            name = re.sub(r"[-_.]+", "-", one["name"]).lower()
            found[name] = one["version"].replace("_", "-")
    return found


def _normal(version: str) -> str:
    from packaging.utils import canonicalize_version

    return canonicalize_version(version)
