"""What is installed already: what has become of it since, and whether it is what a request asks for.

A look at the record and at file status, in a moment.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ..request import Request
from . import engine_images, file_list, guard, layout, record, roots
from .journal import ENDS, Journal
from .layout import Root, Version
from .record import Installed, Record

# A request that differs in nothing but these may come to the same lock; then nothing is to be done either.
_CHOOSING = (
    *("stack", "release", "python", "offline", "lock", "flavour", "image"),
    *("allow_no_gpu", "allow_other_owner"),
    # Whence and by what it came: the lock says both, to the byte.
    *("indexes", "allow_insecure", "installer"),
)


class Condition(NamedTuple):
    """What has become of a version since it was installed: what its user's pip did, or damage."""

    usable: bool  # all of it is there, but for what a package manager changed
    changes: list[str]  # what differs, in sentences
    drifted: bool  # packages of the lock have another version, or are gone


def condition(version: Version) -> Condition:
    """Compare it with what was installed, in its directory and in its engine."""
    differs = file_list.compare(version)
    # Of damaged files enough is known: to ask an engine takes longer.
    image = engine_images.trouble(version) if differs.intact else ""
    changes = [*filter(None, [image]), *differs.sentences()]
    if not changes or version.is_container:
        return Condition(differs.intact and not image, changes, False)
    from .. import drift  # which takes a while: only where something differs

    found = drift.of(version.directory)
    paths = [*differs.missing, *differs.changed]
    drifted = bool(found.changed or found.removed)
    if differs.unreadable or image or drift.unexplained(version.directory, found, paths):
        return Condition(False, [*found.sentences(), *changes], drifted)
    return Condition(True, found.sentences() or changes, drifted)


def look(request: Request) -> Installed | None:
    """The environment that an equal request made, unless it is damaged; touches nothing. What its user's pip
    has changed since is in the notes.

    Equal means: the same request, of the same envcheck with the same catalogue and the same named files.
    One that another user may have prepared is skipped. Raises UsageError for a path that is in a newer
    layout.
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
    """The same for one root. digest: of the lock that the request has come to, where that is known; then a
    version that is not in use does, too, where the one in use does not."""
    current = root.current_id()
    for name in usable(root, Journal(root.journal)):
        if digest or name == current:
            noted = record.read(root.version(name))
            if noted is None or not _serves(noted, request, digest):
                continue
            found = condition(root.version(name))
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
    request = record.public(request)
    if digest:
        chosen = {name: getattr(request, name) for name in _CHOOSING}
        if request.engine in ("", noted.engine):  # else it is to be in another one
            chosen["engine"] = request.engine
        return noted.lock == digest and msgspec.structs.replace(noted.request, **chosen) == request
    try:
        return noted.request == request and noted.inputs == record.inputs(request)
    except OSError:  # a file that the request names is not there: whoever reads it says so
        return False
