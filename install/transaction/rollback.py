"""Back to the version that was in use before, or to another one that is still there."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...exit_codes import Cannot, UsageError
from . import current, existing, record, recovery
from .journal import Journal
from .layout import Root
from .lock import locked


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
    with locked(root, "envcheck rollback", wait=wait, tell=tell):
        recovery.recover(root, journal, tell)
        before = root.current_id() or ""
        chosen = _choose(root, existing.usable(root, journal), to, before)
        found = existing.condition(root.version(chosen))
        if not found.usable:
            noted = record.read(root.version(chosen))
            raise Cannot(
                f"{chosen} is not what was installed: {'; '.join(found.changes)}",
                hint=f"envcheck install --mode {noted.mode if noted else 'wheel'} makes a new version",
            )
        notes = current.use(root, journal, chosen)
    return RolledBack(
        directory=str(root.path),
        version=chosen,
        before=before,
        prefix=str(root.current),
        notes=notes,
    )


def _choose(root: Root, there: list[str], to: str, in_use: str) -> str:
    others = [name for name in there if name != in_use]
    if to and to == in_use:
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
