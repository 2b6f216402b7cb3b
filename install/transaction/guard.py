"""Whose a root is, and that nothing in it leads elsewhere: asked before anything in it is changed.

Whoever may write to a directory may have prepared it. What a record says is checked where it is read; here it
is the directory itself, and envcheck's own places in it.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...exit_codes import UsageError
from ...findings.shell import word

if TYPE_CHECKING:
    from .layout import Root

_OPTION = "--allow-other-owner works in it anyway"


class UnsafeRoot(UsageError):
    """A root in which nothing is changed: another user may have prepared it."""


def check(root: Root) -> None:
    """Raises UnsafeRoot as ``check_kinds`` and ``check_owner``, OSError where it cannot be looked at."""
    check_kinds(root)
    check_owner(root)


def is_safe(root: Root) -> bool:
    """Whether ``check`` has nothing against it."""
    try:
        check(root)
    except (UnsafeRoot, OSError):
        return False
    return True


def check_kinds(root: Root) -> None:
    """Raises UnsafeRoot where one of envcheck's places is a link, or anything else that it never makes."""
    if _mode(root.path) == stat.S_IFLNK:
        raise UnsafeRoot(
            f"{root.path}: this is a symbolic link",
            hint=f"name what it leads to: {os.path.realpath(root.path)}",
        )
    for path in (root.own, root.failed, root.removing):
        _expect(path, stat.S_IFDIR, "directory")
    for path in (root.owner, root.lock, root.holder, root.journal):
        _expect(path, stat.S_IFREG, "regular file")


def check_owner(root: Root) -> None:
    """Raises UnsafeRoot where it belongs to another user, or every user may write to it."""
    for path in (root.path, root.own):
        if (status := _status(path)) is not None:
            _check_owner(path, status, root)


@contextmanager
def opened(root: Root) -> Iterator[tuple[int, int]]:
    """Descriptors of the root and of its ``.envcheck/``, which stay the same whatever their names become.

    Raises UnsafeRoot as ``check_owner``, OSError where there is no such directory.
    """
    with directory(root.path) as top, directory(root.own.name, top) as own:
        for path, handle in ((root.path, top), (root.own, own)):
            _check_owner(path, os.fstat(handle), root)
        yield top, own


@contextmanager
def directory(name: str | Path, within: int | None = None) -> Iterator[int]:
    """A descriptor of a directory, but not by a link. Raises OSError."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, dir_fd=within)
    try:
        yield handle
    finally:
        os.close(handle)


def _expect(path: Path, kind: int, called: str) -> None:
    found = _mode(path)
    if found in (None, kind):
        return
    what = "a symbolic link" if found == stat.S_IFLNK else f"not a {called}"
    raise UnsafeRoot(
        f"{path}: this is {what}, and envcheck never makes one there: somebody else did",
        hint=f"find out who; then rm -r {word(str(path))}, and try again",
    )


def _check_owner(path: Path, status: os.stat_result, root: Root) -> None:
    if root.any_owner:
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise UnsafeRoot(
            f"{path}: belongs to {_user(status.st_uid)}, who may have prepared what lies in it",
            hint=f"name a directory of your own; {_OPTION}",
        )
    if status.st_mode & stat.S_IWOTH:
        raise UnsafeRoot(
            f"{path}: every user may write to it, and may have prepared what lies in it",
            hint=f"chmod o-w {word(str(path))}; {_OPTION}",
        )


def _user(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (user {uid})"
    except KeyError:
        return f"user {uid}"


def _mode(path: Path) -> int | None:
    status = _status(path)
    return None if status is None else stat.S_IFMT(status.st_mode)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
