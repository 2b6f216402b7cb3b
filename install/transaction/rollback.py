"""Back to the version that was in use before, or to another one that is still there."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...exit_codes import Cannot, UsageError
from .. import durable
from . import condition, history, in_use, record, swap, undo
from .journal import Journal
from .layout import Root, Version
from .locking import RootLock


class RolledBack(msgspec.Struct, frozen=True, kw_only=True):
    directory: str
    version: str
    before: str  # the version that was in use; "" where none was
    prefix: str
    notes: list[str] = []


def rollback(
    root: Root,
    to: str = "",
    *,
    wait: float | None = None,
    tell: Callable[[str], None] = lambda sentence: None,
) -> RolledBack:
    """Let ``current`` lead to another version: ``to``, else the one that was in use before this one.

    Done twice, it leads to where it began. Raises UsageError for a version that is not there, Cannot
    where there is none to go to or it is no longer what was installed.
    """
    journal = Journal(root.journal)
    with RootLock(root, "envcheck rollback", wait=wait, tell=tell):
        undo.recovered(root, journal, tell)
        before = root.current_id()
        chosen = _choose(root, journal, to, before)
        found = condition.of(root.version(chosen))
        if not found.usable:
            raise Cannot(
                f"{chosen} is not what was installed: {'; '.join(found.changes)}",
                hint=f"envcheck install --mode {_mode(root.version(chosen))} makes a new version",
            )
        try:
            swap.swap(root, chosen)
        except OSError as error:
            raise Cannot(
                f"{error.filename or root.current}: cannot be changed: {error.strerror}",
                hint=durable.advice(error),
            ) from None
        note = in_use.note(root, journal, chosen, before or "")
    return RolledBack(
        directory=str(root.path),
        version=chosen,
        before=before or "",
        prefix=str(root.current),
        notes=[note] if note else [],
    )


def _choose(root: Root, journal: Journal, to: str, current: str | None) -> str:
    there = history.usable(root, journal)
    others = [name for name in there if name != current]
    if to and to == current:
        raise UsageError(f"{to}: this version is in use already")
    if to and to not in there:
        raise UsageError(
            f"{to}: there is no such verified version"
            + (f"; there are {', '.join(others)}" if others else ""),
            hint="envcheck list shows all of them",
        )
    if not others:
        raise Cannot(f"{root.path}: there is no other version to go back to")
    return to or others[0]


def _mode(version: Version) -> str:
    noted = record.read(version)
    return "wheel" if noted is None else noted.mode
