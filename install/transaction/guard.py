"""Whether a directory is a root of ours, whose it is, and that nothing in it leads elsewhere.

Whoever may write to a directory may have prepared it: it is checked before anything in it is changed.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from ...exit_codes import Cannot, UsageError
from ...findings.shell import word
from .. import durable
from .layout import OWN, Root, now

LAYOUT = 1

_MODE = 0o775  # of what a root is made with, whatever umask allows


class Owner(msgspec.Struct, frozen=True):
    """``owner.json``: this directory is envcheck's, and in this layout."""

    owner: str
    layout: int
    created_at: str


class UnsafeRoot(UsageError):
    """A root in which nothing is changed: another user may have prepared it."""


def is_root(path: Path) -> bool:
    """Whether a root of ours is there. Raises UsageError for one in a newer layout."""
    try:
        owner = durable.load(path / OWN / "owner.json", Owner)
    except (OSError, ValueError):
        return False
    if owner.owner == "envcheck" and owner.layout > LAYOUT:
        raise UsageError(
            f"{path}: was made by a newer envcheck, and this one does not know its layout",
            hint="use the newer envcheck",
        )
    return owner.owner == "envcheck"


def look(root: Root) -> bool:
    """Whether there is a root of ours; False where one can be made. Touches nothing.

    Raises UsageError for a directory that is not ours, that another user may have prepared, or that can
    never be one.
    """
    path = root.path
    _refuse_by_name(path)
    try:
        _check_kinds(root)
        ours = is_root(path)
        # Asked once more: another envcheck may have claimed it since.
        if not ours and path.exists() and not _is_bare(path) and not is_root(path):
            raise UsageError(
                f"{path}: this directory exists, is not empty, and was not made by envcheck",
                hint="name an empty directory with --path, or a new one",
            )
        _check_owners(root)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    return ours


def claim(root: Root) -> None:
    """Make it ours, where it is not. Raises UsageError as ``look``, Cannot where it cannot be made."""
    if look(root):
        return
    owner = Owner("envcheck", LAYOUT, now())
    try:
        root.path.mkdir(_MODE, parents=True, exist_ok=True)
        root.own.mkdir(_MODE, exist_ok=True)
        durable.write(root.owner, msgspec.json.encode(owner))
        durable.sync_directory(root.path)
        durable.sync_directory(root.path.parent)
    except OSError as error:
        raise Cannot(
            f"{error.filename or root.path}: cannot be made: {error.strerror}",
            hint="name another directory with --path",
        ) from None


def check(root: Root) -> None:
    """Raises UnsafeRoot where one of our places is not what envcheck makes, or another user may have prepared
    it; OSError where it cannot be seen."""
    _check_kinds(root)
    _check_owners(root)


def is_safe(root: Root) -> bool:
    """Whether ``check`` has nothing against it."""
    try:
        check(root)
    except (UnsafeRoot, OSError):
        return False
    return True


def _check_kinds(root: Root) -> None:
    if root.path.is_symlink():
        raise UnsafeRoot(
            f"{root.path}: this is a symbolic link",
            hint=f"name what it leads to: {os.path.realpath(root.path)}",
        )
    kinds = dict.fromkeys((root.own, root.failed, root.removing), stat.S_IFDIR)
    kinds |= dict.fromkeys((root.owner, root.lock, root.journal), stat.S_IFREG)
    for path, kind in kinds.items():
        with suppress(FileNotFoundError, NotADirectoryError):
            if stat.S_IFMT(path.lstat().st_mode) != kind:
                made = "directory" if kind == stat.S_IFDIR else "regular file"
                what = "a symbolic link" if path.is_symlink() else f"not a {made}"
                raise UnsafeRoot(
                    f"{path}: this is {what}, and envcheck never makes one there: somebody else did",
                    hint=f"find out who; then rm -r {word(str(path))}, and try again",
                )


def _check_owners(root: Root) -> None:
    for path in (root.path, root.own):
        with suppress(FileNotFoundError, NotADirectoryError):
            _check_owner(path, path.lstat())


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (os.geteuid(), 0):
        raise UnsafeRoot(
            f"{path}: belongs to user {status.st_uid}, who may have prepared what lies in it",
            hint="name a directory of your own, or make it yours (chown)",
        )
    if status.st_mode & stat.S_IWOTH:
        raise UnsafeRoot(
            f"{path}: every user may write to it, and may have prepared what lies in it",
            hint=f"chmod o-w {word(str(path))}",
        )


def _refuse_by_name(path: Path) -> None:
    if not path.is_absolute():
        raise UsageError(f"{path}: this is not an absolute path")
    plain = Path(os.path.normpath(path))
    home = os.path.expanduser("~")  # noqa: PTH111 - a user may have none
    if plain in (Path("/"), Path(home)):
        raise UsageError(
            f"{path}: an environment cannot take all of this", "name a directory in it"
        )
    # os.path's, which take what may not be looked at for what is not there.
    above = next(place for place in (path, *plain.parents) if os.path.exists(place))  # noqa: PTH110
    if not os.path.isdir(above):  # noqa: PTH112
        what = "this" if above == path else str(above)
        raise UsageError(f"{path}: {what} is a file, and an environment needs a directory")
    for parent in plain.parents:
        if is_root(parent):
            raise UsageError(
                f"{path}: lies inside {parent}, another environment of envcheck's",
                hint="name a directory outside of it",
            )


def _is_bare(path: Path) -> bool:
    """Whether it is empty, but for what an envcheck that was killed in ``claim`` has made."""
    names = os.listdir(path)  # noqa: PTH208 - names are all that is asked for
    if names == [OWN]:
        return all(name.startswith(".owner.json.") for name in os.listdir(path / OWN))  # noqa: PTH208
    return not names
