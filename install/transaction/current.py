"""Which version is in use: ``current`` leads to another one in one step, and that is written down."""

from __future__ import annotations

from .. import durable
from . import last_install, roots
from .journal import Journal
from .layout import Root


def swap(root: Root, version_id: str) -> None:
    """Let ``current`` lead to that version, in one step: it names one or the other at every moment.

    Only under the root's lock. Raises OSError, and then it is as it was.
    """
    root.next.unlink(missing_ok=True)
    root.next.symlink_to(version_id)
    try:
        root.next.replace(root.current)
    except OSError as error:
        root.next.unlink(missing_ok=True)
        error.filename, error.filename2 = str(root.current), None
        raise
    durable.sync_directory(root.path)


def clear(root: Root) -> None:
    """Remove ``current``: no version is in use. What is no link there is not ours. Raises OSError."""
    if root.current.is_symlink():
        root.current.unlink(missing_ok=True)
    durable.sync_directory(root.path)


def note(root: Root, journal: Journal, version_id: str, before: str = "") -> str:
    """After the swap. Gives "", or a sentence on what could not be written down.

    It is in use all the same: the next envcheck in this root writes what is missing.
    """
    try:
        journal.append(version_id, "swapped", before=before)
    except OSError as error:
        return f"{_cause(error, root)}; the next run records it"
    return complete(root, journal, version_id)


def complete(root: Root, journal: Journal, version_id: str) -> str:
    """The same for a swap that is in the journal already."""
    if sentence := remember(root):
        return sentence
    try:
        journal.append(version_id, "done")
    except OSError as error:
        return f"{_cause(error, root)}; the next run records it"
    return ""


def remember(root: Root) -> str:
    """Make it the environment installed last, and one of those that are listed. Gives "", or why not."""
    try:
        roots.register(root)
        last_install.write(str(root.current))
    except OSError as error:
        return (
            f"it could not be recorded as the one installed last ({_cause(error, root)}): envcheck doctor has"
            " to be told of it by --target"
        )
    return ""


def _cause(error: OSError, root: Root) -> str:
    return f"{error.filename or root.path}: {error.strerror}"
