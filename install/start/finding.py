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
    installed last. version: an id of `envcheck list`, or the start of one; "": the one in use, which a swap
    that comes later does not change. Raises NotStarted, UsageError.
    """
    try:
        root = roots.find(word) if word else _last()
        path = Path(os.path.abspath(os.path.expanduser(word or "/")))  # noqa: PTH100, PTH111 - links stay
    except FileNotFoundError:  # of the working directory, which a relative path begins with
        raise NotStarted(f"{word}: the working directory no longer exists") from None
    if not guard.is_root(root.path):
        raise NotStarted(
            f"{root.path}: no environment of envcheck's is there any more", roots.NONE_YET
        )
    in_use = root.current_id()
    if path.parent == root.path and layout.is_id(path.name):
        version = version or path.name
    chosen = roots.version_id(root, version) if version else in_use
    there = ", ".join(one.id for one in root.versions())
    if chosen is None:
        hint = f"--version names one of those that are there: {there}" if there else roots.NONE_YET
        raise NotStarted(f"{root.path}: no version of it is in use", hint)
    found = root.version(chosen)
    if not layout.is_id(chosen) or not found.is_directory:
        hint = f"there are {there}" if there else roots.NONE_YET
        raise NotStarted(f"{chosen}: there is no such version in {root.path}", hint)
    if chosen != in_use and not found.record.is_file():
        raise NotStarted(
            f"{chosen}: was never finished, or is being built",
            hint="envcheck list shows the state of each version",
        )
    return found


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
