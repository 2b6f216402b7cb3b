"""Whether what is asked for is installed already: a look at the record and at file status, in a moment."""

from __future__ import annotations

import msgspec

from ..request import Request
from . import condition, guard, history, layout, record, roots
from .condition import Condition
from .journal import FINISHED, Journal, last_steps
from .layout import Root
from .record import Installed, Record

# A request that differs in nothing but these may come to the same lock; then nothing is to be done either.
_CHOOSING = (
    "stack",
    "release",
    "python",
    "offline",
    "lock",
    "allow_no_gpu",
    "allow_other_owner",
    "flavour",
    "image",
    # Whence and by what it came: the lock says both, to the byte.
    "indexes",
    "allow_insecure",
    "installer",
)


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
        if (not request.path or layout.is_root(root.path))
        and guard.is_safe(root)
        and (installed := in_root(root, request))
    ]
    return max(found, key=lambda installed: installed.record.verified_at, default=None)


def in_root(root: Root, request: Request, digest: str = "") -> Installed | None:
    """The same for one root. digest: of the lock that the request has come to, where that is known."""
    current = root.current_id()
    if current is None or not root.version(current).is_directory:
        return None
    noted = record.read(root.version(current))
    if noted is None or not _serves(noted, request, digest):
        return None
    if last_steps(Journal(root.journal).entries()).get(current) not in FINISHED:
        return None
    found = condition.of(root.version(current))
    return _installed(root, noted, current, found) if found.usable else None


def beside(root: Root, request: Request, digest: str) -> Installed | None:
    """A version by this lock that is not in use and can be. Under the root's lock, or only to be shown."""
    current = root.current_id()
    for name in history.usable(root, Journal(root.journal)):
        noted = record.read(root.version(name))
        if name != current and noted is not None and _serves(noted, request, digest):
            found = condition.of(root.version(name))
            if found.usable:
                return _installed(root, noted, name, found)
    return None


def _installed(root: Root, noted: Record, name: str, found: Condition) -> Installed:
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
