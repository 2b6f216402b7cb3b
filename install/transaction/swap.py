"""The one moment in which an environment changes: ``current`` leads to another version."""

from __future__ import annotations

from . import durable
from .layout import Root


def swap(root: Root, version_id: str) -> None:
    """Let ``current`` lead to that version, in one step: it names one or the other at every moment.

    Only under the root's lock. Raises OSError, and then it is as it was.
    """
    root.next.unlink(missing_ok=True)
    root.next.symlink_to(version_id)
    try:
        root.next.replace(root.current)
    except OSError:
        root.next.unlink(missing_ok=True)
        raise
    durable.sync_directory(root.path)


def clear(root: Root) -> None:
    """Remove ``current``: no version is in use. Raises OSError."""
    root.current.unlink(missing_ok=True)
    durable.sync_directory(root.path)
