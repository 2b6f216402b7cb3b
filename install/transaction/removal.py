"""Takes versions away: out of sight in one step, then off the disk."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from . import durable, outside
from .layout import Root, Version
from .left import Left as Left


def discard(root: Root, version: Version) -> None:
    """Remove a version, and before it what an engine holds for it, which its directory alone tells of.

    Killed in between, it no longer looks like one, and the next run goes on. Raises Left, where the engine
    does not let go with the version as it was.
    """
    outside.release(version)
    if os.path.lexists(version.directory):
        try:
            root.removing.mkdir(exist_ok=True)
            away = _free(root.removing / version.id)
            version.directory.rename(away)
            durable.sync_directory(root.path)
        except OSError:
            away = version.directory  # the disk is too full for a name, or a mount point lies there
        wipe(away)
    empty(root)


def empty(root: Root) -> None:
    """Remove what an earlier run was about to. Raises Left."""
    try:
        waiting = sorted(root.removing.iterdir())
    except OSError:
        return
    for path in waiting:
        wipe(path)
    root.removing.rmdir()


def wipe(path: Path) -> None:
    """Remove a directory and all in it, also what is write-protected. Raises Left."""
    shutil.rmtree(path, ignore_errors=True)
    if not os.path.lexists(path):
        return
    for folder, _, _ in os.walk(path):
        try:
            os.chmod(folder, stat.S_IRWXU)  # noqa: PTH101 - a name that may hold anything
        except OSError:
            continue
    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        raise Left(_why(path))


def _why(path: Path) -> str:
    """The first thing that stays, with the reason, as the system gives it when asked once more."""
    for folder, folders, files in os.walk(path, topdown=False):
        # One by one: rmtree's errors name a file without its directory.
        within = [Path(folder, name) for name in files + folders]
        for inside in [*(p for p in within if p.is_symlink() or not p.is_dir()), Path(folder)]:
            try:
                if inside == Path(folder):
                    inside.rmdir()
                else:
                    inside.unlink(missing_ok=True)
            except OSError as error:
                return f"{inside}: {error.strerror}"
    return f"{path}: came back"


def _free(path: Path) -> Path:
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = path.with_name(f"{path.name}.{number}")
    return free
