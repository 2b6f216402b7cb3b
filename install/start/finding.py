"""Which installed version `envcheck run` starts: looked up once, and then used throughout."""

from __future__ import annotations

import os
from pathlib import Path

from ...exit_codes import NotStarted
from ..transaction import guard, layout, roots
from ..transaction.layout import Root, Version


def find(word: str = "", version: str = "") -> Version:
    """The version to start.

    word: an environment's name or a path (of its root, of ``current``, of a version in it); "": the one
    installed last. version: an id of `envcheck list`, or the start of one; "": the one in use. Raises
    NotStarted, UsageError.
    """
    root = _named(word) if word else _last()
    if not guard.is_root(root.path):
        raise NotStarted(
            f"{root.path}: no environment of envcheck's is there any more", roots.NONE_YET
        )
    asked = version or _version_in(word, root)
    return _asked_for(root, roots.version_id(root, asked)) if asked else _in_use(root)


def _named(word: str) -> Root:
    try:
        return roots.find(word)
    except FileNotFoundError:  # of the working directory, which a relative path begins with
        raise NotStarted(f"{word}: the working directory no longer exists") from None


def _last() -> Root:
    prefix = roots.last()
    if prefix is not None:
        return Root(Path(prefix).parent)
    names = ", ".join(root.name for root in roots.known())
    if names:
        raise NotStarted(
            f"which environment? The one installed last is not there any more; there are {names}",
            hint="name one: --name NAME",
        )
    raise NotStarted("nothing is installed yet", roots.NONE_YET)


def _version_in(word: str, root: Root) -> str:
    """The version's id, where the word is the path of a version."""
    path = Path(os.path.abspath(os.path.expanduser(word or "/")))  # noqa: PTH100, PTH111 - links stay
    return path.name if path.parent == root.path and layout.is_id(path.name) else ""


def _in_use(root: Root) -> Version:
    """What ``current`` names at this moment: a swap that comes later changes nothing for who is started."""
    named = root.current_id()
    if named is None:
        hint = f"--version names one of those that are there: {_ids(root)}"
        raise NotStarted(
            f"{root.path}: no version of it is in use", hint if root.versions() else roots.NONE_YET
        )
    found = root.version(named)
    if not found.is_directory:
        raise NotStarted(
            f"{root.current}: leads to {named}, which no longer exists",
            hint="envcheck list shows what is; envcheck rollback goes back to another version",
        )
    return found


def _asked_for(root: Root, version_id: str) -> Version:
    found = root.version(version_id)
    if not layout.is_id(version_id) or not found.is_directory:
        hint = f"there are {_ids(root)}" if root.versions() else roots.NONE_YET
        raise NotStarted(f"{version_id}: there is no such version in {root.path}", hint)
    if version_id != root.current_id() and not found.record.is_file():
        raise NotStarted(
            f"{version_id}: was never finished, or is being built",
            hint="envcheck list shows the state of each version",
        )
    return found


def _ids(root: Root) -> str:
    return ", ".join(version.id for version in root.versions())
