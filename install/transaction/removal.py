"""Takes versions away: out of sight in one step, then off the disk. No link is ever followed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ...findings.shell import word
from .. import durable
from . import engine_images, guard
from .engine_images import ImageStore
from .interfaces import RemovalError
from .layout import Root, Version


def discard(root: Root, version: Version, images: ImageStore) -> None:
    """Remove a version, and before it what an engine holds for it, which its directory alone tells of.

    Raises RemovalError where the engine does not let go; then the version is as it was.
    """
    if version.is_directory:
        engine_images.release(version, images)
    take_away(root, version)


def take_away(root: Root, version: Version) -> None:
    """Remove its directory. What has its name and is no directory is not envcheck's. Raises RemovalError.

    Killed in between, it no longer looks like a version, and the next run goes on.
    """
    try:
        with guard.opened(root) as (top, own):
            if _kind(version.id, top) == stat.S_IFDIR:
                _move_away(root, version, top, own)
    except FileNotFoundError:
        return  # the root itself is gone
    except OSError as error:
        raise RemovalError(f"{error.filename or root.path}: {error.strerror}") from None
    empty(root)


def empty(root: Root) -> None:
    """Remove what an earlier run was about to. Raises RemovalError, OSError."""
    try:
        with guard.opened(root) as (_, own):
            with guard.directory(root.removing.name, own) as waiting:
                for name in sorted(os.listdir(waiting)):  # noqa: PTH208 - of a descriptor
                    wipe(name, waiting, root.removing)
            os.rmdir(root.removing.name, dir_fd=own)
    except FileNotFoundError:
        return


def wipe(name: str, within: int, parent: Path) -> None:
    """Remove what has this name in an open directory, and all that is in it, also what is write-protected.

    parent: the directory's path, for the message. Raises RemovalError.
    """
    try:
        if _remove(name, within):
            _unlock(name, within)
            if stays := _remove(name, within):
                raise RemovalError(f"{parent / stays[0]}: {stays[1]}")
    except RecursionError:
        raise RemovalError(
            f"{parent / name}: directories are nested too deeply in it",
            f"rm -r {word(str(parent / name))}, and try again",
        ) from None


def _move_away(root: Root, version: Version, top: int, own: int) -> None:
    try:
        if _kind(root.removing.name, own) is None:
            os.mkdir(root.removing.name, dir_fd=own)
        with guard.directory(root.removing.name, own) as removing:
            os.rename(version.id, _free(version.id, removing), src_dir_fd=top, dst_dir_fd=removing)
        durable.sync_directory(root.path)
    except OSError:  # the disk is too full for a name, or a mount point lies there
        wipe(version.id, top, root.path)


def _remove(name: str, within: int) -> tuple[str, str] | None:
    """What stays of it first (a path from ``within``), and why; None: nothing."""
    stays: list[tuple[str, str]] = []

    def attempt(entry: str, folder: int, path: str) -> None:
        try:
            if _kind(entry, folder) == stat.S_IFDIR:
                os.rmdir(entry, dir_fd=folder)
            else:
                os.unlink(entry, dir_fd=folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            stays.append((path, error.strerror or str(error)))

    if _kind(name, within) == stat.S_IFDIR:
        for path, folders, files, folder in os.fwalk(name, topdown=False, dir_fd=within):
            for entry in files + folders:
                attempt(entry, folder, f"{path}/{entry}")
    attempt(name, within, name)
    return stays[0] if stays else None


def _unlock(name: str, within: int) -> None:
    """Let the owner change every directory in it."""
    if _kind(name, within) != stat.S_IFDIR:
        return
    _allow(name, within)
    for _, folders, _, folder in os.fwalk(name, dir_fd=within):
        for entry in folders:
            _allow(entry, folder)


def _allow(name: str, within: int) -> None:
    try:
        if _kind(name, within) == stat.S_IFDIR:
            os.chmod(name, stat.S_IRWXU, dir_fd=within)
    except OSError:
        return


def _kind(name: str, within: int) -> int | None:
    """``stat.S_IFMT`` of it, of a link itself; None: nothing is there."""
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


def _free(name: str, within: int) -> str:
    number, free = 1, name
    while _kind(free, within) is not None:
        number += 1
        free = f"{name}.{number}"
    return free
