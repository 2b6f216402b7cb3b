"""Takes versions away: out of sight in one step, then off the disk. No link is ever followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
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
        with guard.opened(root) as (top, own):
            if _kind(version.id, top) == stat.S_IFDIR:
                try:
                    os.rename(version.id, root.removing.name, src_dir_fd=top, dst_dir_fd=own)
                    durable.sync_directory(root.path)
                except OSError:  # the disk is too full for a name, or a mount point lies there
                    wipe(version.id, top, root.path)
    except FileNotFoundError:
        return  # the root itself is gone
    except OSError as error:
        raise NotPutBack(f"{error.filename or root.path}: {error.strerror}") from None
    empty(root)


def empty(root: Root) -> None:
    """Remove what an earlier run was about to. Raises NotPutBack, OSError."""
    with suppress(FileNotFoundError), guard.opened(root) as (_, own):
        if _kind(root.removing.name, own) is not None:
            wipe(root.removing.name, own, root.own)


def wipe(name: str, within: int, parent: Path) -> None:
    """Remove what has this name in an open directory, and all that is in it, also what is write-protected.

    parent: the directory's path, for the message. Raises NotPutBack.
    """
    try:
        if _remove(name, within):
            for entry, folder, _ in _walk(name, within, top_first=True):
                with suppress(OSError):
                    if _kind(entry, folder) == stat.S_IFDIR:
                        os.chmod(entry, stat.S_IRWXU, dir_fd=folder)
            if stays := _remove(name, within):
                raise NotPutBack(f"{parent / stays[0]}: {stays[1]}")
    except RecursionError:
        raise NotPutBack(
            f"{parent / name}: directories are nested too deeply in it",
            f"rm -r {word(str(parent / name))}, and try again",
        ) from None


def _remove(name: str, within: int) -> tuple[str, str] | None:
    """The first that stays (a path from ``within``), and why; None: nothing does."""
    first: tuple[str, str] | None = None
    for entry, folder, path in _walk(name, within, top_first=False):
        try:
            is_folder = _kind(entry, folder) == stat.S_IFDIR
            (os.rmdir if is_folder else os.unlink)(entry, dir_fd=folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            first = first or (path, error.strerror or str(error))
    return first


def _walk(name: str, within: int, *, top_first: bool) -> Iterator[tuple[str, int, str]]:
    """It and everything in it: name, descriptor of its directory, path from ``within``."""
    if top_first:
        yield name, within, name
    if _kind(name, within) == stat.S_IFDIR:
        for path, folders, files, folder in os.fwalk(name, topdown=top_first, dir_fd=within):
            for entry in files + folders:
                yield entry, folder, f"{path}/{entry}"
    if not top_first:
        yield name, within, name


def _kind(name: str, within: int) -> int | None:
    """``stat.S_IFMT`` of it, of a link itself; None: nothing is there."""
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None
