"""The one moment in which an environment changes: ``current`` leads to another version."""

from __future__ import annotations

from .. import durable
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
