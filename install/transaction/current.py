"""Which version is in use: ``current`` leads to another one in one step, and that is written down."""

from __future__ import annotations

from ...exit_codes import Cannot
from .. import durable
from ..signals import held_back
from . import roots
from .journal import Journal
from .layout import Root


def use(root: Root, journal: Journal, version_id: str) -> list[str]:
    """Let ``current`` lead to that version, and write that down. Only under the root's lock.

    Gives sentences on what could not be written down: it is in use all the same, and the next envcheck in
    this root writes what is missing. Raises Cannot where the link cannot be changed: it is as it was.
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
            return [f"{_cause(error, root)}; the next run records it"]
        return complete(root, journal, version_id)


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


def complete(root: Root, journal: Journal, version_id: str) -> list[str]:
    """What comes after a swap that is in the journal already; gives sentences as ``use``."""
    if notes := remember(root):
        return notes
    try:
        journal.append(version_id, "done")
    except OSError as error:
        return [f"{_cause(error, root)}; the next run records it"]
    return []


def remember(root: Root) -> list[str]:
    """Make it the environment installed last, and one of those that are listed; or say why not."""
    try:
        roots.remember(root)
    except OSError as error:
        return [
            f"it could not be recorded as the one installed last ({_cause(error, root)}): envcheck doctor has"
            " to be told of it by --target"
        ]
    return []


def _cause(error: OSError, root: Root) -> str:
    return f"{error.filename or root.path}: {error.strerror}"
