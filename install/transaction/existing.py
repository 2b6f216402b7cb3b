"""What is installed already: what has become of it since, and whether it is what a request asks for."""

from __future__ import annotations

from typing import NamedTuple

from ..request import Request
from . import drift, engine_images, file_list, guard, layout, record, roots
from .journal import ENDS, Journal
from .layout import Root, Version
from .record import Installed, Record


class Condition(NamedTuple):
    """What has become of a version since it was installed."""

    usable: bool  # all of it is there, but for what a package manager changed
    changes: list[str]  # what differs, in sentences
    drifted: bool  # packages of the lock have another version, or are gone


def condition(version: Version) -> Condition:
    """Compare it with what was installed, in its directory and in its engine."""
    files = file_list.compare(version)
    # An engine is asked only where the files do not answer it: that takes longer.
    image = engine_images.trouble(version) if files.intact else ""
    changes = [*filter(None, [image]), *files.sentences()]
    noted = record.read(version)
    if not changes or version.is_container or noted is None:
        return Condition(files.intact and not image, changes, False)
    found = drift.of(version, noted.versions)
    drifted = bool(found.changed or found.removed)
    broken = bool(image or files.unreadable or not version.python.exists())
    usable = not broken and (files.intact or drifted)
    by_manager = found.sentences() if usable else [*found.sentences(), *changes]
    return Condition(usable, by_manager or changes, drifted)


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
    if digest:  # the lock says to the byte what is installed
        same = (noted.lock, noted.mode) == (digest, request.mode)
        return same and request.engine in ("", noted.engine)
    try:
        return noted.request == record.public(request) and noted.inputs == record.inputs(request)
    except OSError:  # a file that the request names is not there: whoever reads it says so
        return False
