"""Puts back what an installation has begun, and says what became of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ...exit_codes import Cannot, EnvcheckError, NotPutBack, PutBack
from .. import durable
from . import recover, removal
from .journal import Journal
from .layout import Root, Version
from .locking import RootLock

KEPT = 3  # failed versions whose logs are kept


def recovered(root: Root, journal: Journal, tell: Callable[[str], None]) -> None:
    """``recover``, for those who are about to change something. Raises Cannot, NotPutBack."""
    try:
        recover.recover(root, journal, tell)
    except OSError as error:
        raise Cannot(
            f"{error.filename or root.journal}: an installation that was cut off cannot be put in"
            f" order: {error.strerror}",
            hint=durable.advice(error),
        ) from None
    except removal.RemovalError as left:
        raise NotPutBack(
            f"an interrupted installation cannot be removed: {left}",
            hint=left.hint or f"remove {root.removing} yourself, and try again",
        ) from None


def check_still_ours(held: RootLock, root: Root) -> None:
    """Raises PutBack where another envcheck has taken the lock over: this one looked dead to it."""
    if not held.is_ours():
        raise PutBack(f"{root.path}: another envcheck took over while this one did not answer")


def undo(
    root: Root,
    journal: Journal,
    version: Version,
    what: str,
    error: BaseException,
    tell: Callable[[str], None],
) -> None:
    """Take a version back that did not come to be, and raise what the user is to be told.

    Returns where ``error`` itself is that: Ctrl-C, the end of the process. Raises PutBack, NotPutBack.
    """
    if root.current_id() == version.id:  # what comes after the swap does not undo it
        tell(f"{what} is installed: it was too late to stop")
        return
    kept = _keep_what_was_said(root, version)
    try:
        removal.discard(root, version)
    except removal.RemovalError as left:
        raise NotPutBack(
            f"{what} was not installed ({_sentence(error)}), and something of it is left: {left}",
            hint=f"what is in use has not changed; {left.hint or f'remove {root.removing} yourself'}",
        ) from error
    with suppress(OSError):  # the next run sees that there is nothing to undo
        journal.append(version.id, "undone", why=type(error).__name__)
    if not isinstance(error, Exception):
        tell(f"{what} was not installed, and nothing has changed; downloads are kept")
        return
    raise PutBack(
        f"{what} was not installed, and nothing has changed: {_sentence(error)}",
        hint=_hint(error, version, kept),
    ) from error


def _hint(error: BaseException, version: Version, kept: Path | None) -> str:
    """The error's own, with the place to which the logs that it may name have gone."""
    hint = error.hint if isinstance(error, EnvcheckError) else ""
    hint = durable.advice(error) if isinstance(error, OSError) else hint
    if str(version.logs) in hint:
        hint = hint.replace(str(version.logs), str(kept)) if kept else ""
    return hint or (f"the log is in {kept}" if kept else "")


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return where + (error.strerror or str(error))
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, SystemExit):
        return "terminated"
    if isinstance(error, EnvcheckError):
        return str(error)
    return f"internal error: {type(error).__name__}: {error}"


def _keep_what_was_said(root: Root, version: Version) -> Path | None:
    """Copy the logs and the doctor's report away from a version that is about to go; None: there are none."""
    said = [
        path
        for path in (version.doctor, *_files(version.logs))
        if path.is_file() and not path.is_symlink()
    ]
    if not said:
        return None
    place = root.failed / version.id
    try:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for path in said:
            shutil.copyfile(path, place / path.name)
        _drop_old(root)
    except OSError:  # the disk is full, as a rule: then the sentence has to do
        shutil.rmtree(place, ignore_errors=True)
        return None
    return place


def _drop_old(root: Root) -> None:
    places = sorted(root.failed.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for place in places[KEPT:]:
        shutil.rmtree(place, ignore_errors=True)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
