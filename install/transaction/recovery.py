"""Puts back what an installation has begun, after a failure and after a kill, and says what became of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ...exit_codes import Cannot, EnvcheckError, NotPutBack, PutBack
from .. import durable
from . import current, removal
from .engine_images import ImageStore
from .interfaces import RemovalError
from .journal import Journal, unfinished
from .layout import Root, Version

KEPT = 3  # failed versions whose logs are kept


def recover(root: Root, journal: Journal, images: ImageStore, tell: Callable[[str], None]) -> None:
    """Put in order what an envcheck that was killed has left, before anything else is done in a root.

    Under its lock. Raises Cannot, NotPutBack.
    """
    try:
        _recover(root, journal, images, tell)
    except OSError as error:
        raise Cannot(
            f"{error.filename or root.journal}: an installation that was cut off cannot be put in"
            f" order: {error.strerror}",
            hint=durable.advice(error),
        ) from None
    except RemovalError as error:
        raise NotPutBack(
            f"an interrupted installation cannot be removed: {error}",
            hint=error.hint or f"remove {root.removing} yourself, and try again",
        ) from None


def _recover(root: Root, journal: Journal, images: ImageStore, tell: Callable[[str], None]) -> None:
    """Complete a swap that was not recorded, and take back what was not finished.

    A version that was begun is removed even where much of it is there: half of an environment cannot be
    told from a whole one without building it again, and that is cheap, for fetched files stay in the store.
    What ``current`` names is never touched.
    """
    root.next.unlink(missing_ok=True)
    if foreign := journal.foreign():
        first = f"line {foreign[0]} was" if len(foreign) == 1 else f"{len(foreign)} lines were"
        tell(f"{root.journal}: {first} not written by this envcheck, and ignored")
    in_use = root.current_id()
    step = journal.last_steps().get(in_use or "")
    if in_use is not None and step in ("verified", "swapped"):
        if step == "verified":
            journal.append(in_use, "swapped", why="found in use")
        current.complete(root, journal, in_use)
    for name in unfinished(root, journal):
        version = root.version(name)
        if version.is_directory:
            tell(f"{version.directory}: removing what an interrupted installation left")
        removal.discard(root, version, images)
        journal.append(name, "undone", why="cut off")
    removal.empty(root)


def undo(
    root: Root,
    journal: Journal,
    version: Version,
    images: ImageStore,
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
    kept = _keep_logs(root, version)
    try:
        removal.discard(root, version, images)
    except RemovalError as failed:
        raise NotPutBack(
            f"{what} was not installed ({_sentence(error)}), and something of it is left: {failed}",
            hint=f"what is in use has not changed; {failed.hint or f'remove {root.removing} yourself'}",
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


def _keep_logs(root: Root, version: Version) -> Path | None:
    """Copy the logs and the doctor's report away from a version that is about to go; None: there are none."""
    logs = sorted(version.logs.iterdir()) if version.logs.is_dir() else []
    files = [p for p in (version.doctor, *logs) if p.is_file() and not p.is_symlink()]
    if not files:
        return None
    place = root.failed / version.id
    try:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for path in files:
            shutil.copyfile(path, place / path.name)
        newest = sorted(root.failed.iterdir(), key=lambda path: -path.stat().st_mtime_ns)
        for old in newest[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:  # the disk is full, as a rule: then the sentence has to do
        shutil.rmtree(place, ignore_errors=True)
        return None
    return place
