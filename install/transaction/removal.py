"""Takes versions away: out of sight in one step, then off the disk. No link is ever followed."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from ...exit_codes import NotPutBack
from ...findings.shell import word
from .. import durable
from . import engine_images, guard
from .layout import Root, Version


def discard(root: Root, version: Version) -> None:
    """Remove a version, and before it what an engine holds for it. Raises NotPutBack."""
    if version.is_directory:
        engine_images.release(version)
    take_away(root, version)


def take_away(root: Root, version: Version) -> None:
    """Remove its directory; a killed removal is finished by the next run. Raises NotPutBack."""
    try:
        guard.check(root)
        if version.directory.is_dir() and not version.directory.is_symlink():
            try:
                version.directory.rename(root.removing)
                durable.sync_directory(root.path)
            except OSError:  # the disk is too full for a name, or a mount point lies there
                wipe(version.directory)
    except OSError as error:
        raise NotPutBack(f"{error.filename or root.path}: {error.strerror}") from None
    empty(root)


def empty(root: Root) -> None:
    """Remove what an earlier run was about to. Raises NotPutBack, OSError."""
    if os.path.lexists(root.removing):
        guard.check(root)
        wipe(root.removing)


def wipe(path: Path) -> None:
    """Remove it and all that is in it, also what is write-protected. Raises NotPutBack."""
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
            return
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            _unprotect(path)
            shutil.rmtree(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        there = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
        raise NotPutBack(f"{next(there, path)}: {error.strerror}") from None
    except RecursionError:
        raise NotPutBack(
            f"{path}: directories are nested too deeply in it",
            f"rm -r {word(str(path))}, and try again",
        ) from None


def _unprotect(top: Path) -> None:
    """Let this user change every directory below it, from the top down."""
    with suppress(OSError):
        top.chmod(stat.S_IRWXU)
    for folder, names, _ in os.walk(top):
        for path in (Path(folder, name) for name in names):
            with suppress(OSError):
                if not path.is_symlink():
                    path.chmod(stat.S_IRWXU)
