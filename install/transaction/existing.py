"""What is installed already: what has become of it since, and whether it is what a request asks for.

A look at the record and at file status, in a moment.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ..request import Request
from . import engine_images, file_list, guard, layout, record, roots
from .engine_images import NO_ENGINES, ImageStore
from .file_list import Difference
from .journal import FINISHED, Journal, unfinished
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


def condition(version: Version, images: ImageStore = NO_ENGINES) -> Condition:
    """Compare it with what was installed."""
    difference = compare(version, images)
    changes = difference.sentences()
    if not changes or version.is_container:
        return Condition(difference.intact, changes, False)
    from .. import drift  # which takes a while: only where something differs

    found = drift.of(version.directory)
    paths = [*difference.missing, *difference.changed]
    damaged = drift.unexplained(version.directory, found, paths)
    sound = not (damaged or difference.unreadable or difference.image)
    drifted = bool(found.changed or found.removed)
    if sound:
        return Condition(True, found.sentences() or changes, drifted)
    return Condition(False, [*found.sentences(), *changes], drifted)


def compare(version: Version, images: ImageStore = NO_ENGINES) -> Difference:
    """What differs from what was installed, in the version's directory and in its engine."""
    difference = file_list.compare(version)
    if not difference.intact:  # whatever the engine says, which takes longer to ask
        return difference
    return msgspec.structs.replace(difference, image=engine_images.trouble(version, images))


def look(request: Request, images: ImageStore = NO_ENGINES) -> Installed | None:
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
        and (installed := in_root(root, request, images=images))
    ]
    return max(found, key=lambda installed: installed.record.verified_at, default=None)


def in_root(
    root: Root, request: Request, digest: str = "", images: ImageStore = NO_ENGINES
) -> Installed | None:
    """The same for one root. digest: of the lock that the request has come to, where that is known."""
    current = root.current_id()
    if current is None or not root.version(current).is_directory:
        return None
    if Journal(root.journal).last_steps().get(current) not in FINISHED:
        return None
    return _serving(root, current, request, digest, images)


def beside(
    root: Root, request: Request, digest: str, images: ImageStore = NO_ENGINES
) -> Installed | None:
    """A version by this lock that is not in use and can be. Under the root's lock, or only to be shown."""
    current = root.current_id()
    others = [name for name in usable(root, Journal(root.journal)) if name != current]
    served = (_serving(root, name, request, digest, images) for name in others)
    return next(filter(None, served), None)


def usable(root: Root, journal: Journal) -> list[str]:
    """Every verified version that was finished: ``current`` first, then by when it was last in use."""
    begun = set(unfinished(root, journal))
    noted = {version.id: record.read(version) for version in root.versions()}
    verified = {name: one.verified_at for name, one in noted.items() if one and name not in begun}
    entries = enumerate(journal.entries())
    used = {entry.version: number for number, entry in entries if entry.step == "swapped"}
    current = root.current_id()
    return sorted(
        verified,
        key=lambda name: (name == current, used.get(name, -1), verified[name]),
        reverse=True,
    )


def _serving(
    root: Root, name: str, request: Request, digest: str, images: ImageStore
) -> Installed | None:
    """A version, where it is what the request asks for, and undamaged."""
    noted = record.read(root.version(name))
    if noted is None or not _serves(noted, request, digest):
        return None
    found = condition(root.version(name), images)
    if not found.usable:
        return None
    return Installed(
        directory=str(root.path),
        version=name,
        prefix=str(root.current),
        already=True,
        before=root.current_id() or "",
        record=noted,
        notes=found.changes,
        drifted=found.drifted,
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
