"""Writes down that a version is in use: in the journal, and where the doctor and `list` look for it."""

from __future__ import annotations

from . import last_install, roots
from .journal import Journal
from .layout import Root


def note(root: Root, journal: Journal, version_id: str, before: str = "") -> str:
    """After the swap. Gives "", or a sentence on what could not be written down.

    It is in use all the same: the next envcheck in this root writes what is missing.
    """
    try:
        journal.append(version_id, "swapped", before=before)
    except OSError as error:
        return f"{_said(error, root)}; the next run records it"
    return complete(root, journal, version_id)


def complete(root: Root, journal: Journal, version_id: str) -> str:
    """The same for a swap that is in the journal already."""
    if sentence := remember(root):
        return sentence
    try:
        journal.append(version_id, "done")
    except OSError as error:
        return f"{_said(error, root)}; the next run records it"
    return ""


def remember(root: Root) -> str:
    """Make it the environment installed last, and one of those that are listed. Gives "", or why not."""
    try:
        roots.register(root)
        last_install.write(str(root.current))
    except OSError as error:
        found = "envcheck doctor has to be told of it by --target"
        return f"it could not be recorded as the one installed last ({_said(error, root)}): {found}"
    return ""


def _said(error: OSError, root: Root) -> str:
    return f"{error.filename or root.path}: {error.strerror}"
