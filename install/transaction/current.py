"""Which version is in use: ``current`` leads to another one in one step, and that is written down."""

from __future__ import annotations

from typing import NamedTuple

from ...exit_codes import Cannot, UsageError
from .. import durable
from ..signals import held_back
from . import existing, record, recovery
from .interfaces import Tell
from .journal import Journal
from .layout import Root
from .lock import locked


class RolledBack(NamedTuple):
    version: str
    before: str  # the version that was in use; "" where none was
    prefix: str
    notes: list[str]


def rollback(
    root: Root, to: str = "", *, wait: float | None = None, tell: Tell = lambda sentence: None
) -> RolledBack:
    """Let ``current`` lead to another version: ``to``, else the one that was in use before this one.

    Raises UsageError for a version that is not there, Cannot where there is none to go to or it is no longer
    what was installed.
    """
    journal = Journal(root.journal)
    with locked(root, "envcheck rollback", wait=wait, tell=tell):
        recovery.recover(root, journal, tell)
        before, chosen = destination(root, to)
        version = root.version(chosen)
        found = existing.condition(version)
        if not found.usable:
            noted = record.read(version)
            raise Cannot(
                f"{chosen} is not what was installed: {'; '.join(found.changes)}",
                hint=f"envcheck install --mode {noted.mode if noted else 'wheel'} makes a new version",
            )
        notes = use(root, journal, chosen)
    return RolledBack(chosen, before, str(root.current), notes)


def destination(root: Root, to: str = "") -> tuple[str, str]:
    """What is in use, and what a rollback would put in its place. Raises as ``rollback``."""
    in_use = root.current_id() or ""
    there = existing.usable(root, Journal(root.journal))
    others = [name for name in there if name != in_use]
    if to and to == in_use:
        raise UsageError(f"{to}: this version is in use already")
    if to and to not in there:
        names = f"; there are {', '.join(others)}" if others else ""
        raise UsageError(
            f"{to}: there is no such verified version{names}",
            hint="envcheck list shows all of them",
        )
    if not others:
        raise Cannot(f"{root.path}: there is no other version to go back to")
    return in_use, to or others[0]


def use(root: Root, journal: Journal, version_id: str) -> list[str]:
    """Let ``current`` lead to that version, and write that down. Only under the root's lock.

    Returns sentences on what could not be written down, which the next run does. Raises Cannot where the
    link cannot be changed: it is as it was.
    """
    before = root.current_id() or ""
    with held_back():
        try:
            swap(root, version_id)
        except OSError as error:
            raise Cannot(
                f"{root.current}: cannot be changed: {error.strerror}",
                hint=durable.advice(error),
            ) from None
        try:
            journal.append(version_id, "swapped", before=before)
        except OSError as error:
            return [f"{recovery.cause(error, root)}; the next run records it"]
        return recovery.complete(root, journal, version_id)


def swap(root: Root, version_id: str) -> None:
    """Change the link, which names one version or the other at every moment. Raises OSError."""
    root.next.unlink(missing_ok=True)
    root.next.symlink_to(version_id)
    try:
        root.next.replace(root.current)
    except OSError:
        root.next.unlink(missing_ok=True)
        raise
    durable.sync_directory(root.path)


def clear(root: Root) -> None:
    """Remove ``current``: no version is in use. What is no link there is not ours. Raises OSError."""
    if root.current.is_symlink():
        root.current.unlink(missing_ok=True)
    durable.sync_directory(root.path)
