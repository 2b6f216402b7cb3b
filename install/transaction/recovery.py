"""Puts back what an installation has begun, after a failure and after a kill."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from ...exit_codes import Cannot, EnvcheckError, NotPutBack, PutBack
from .. import durable
from . import guard, removal, roots
from .guard import UnsafeRoot
from .interfaces import Tell
from .journal import Journal, unfinished
from .layout import Root, Version

_KEPT = 3  # failed versions whose logs are kept


def recover(root: Root, journal: Journal, tell: Tell) -> None:
    """Clean up after an envcheck that was killed, before anything else is done in a root; under its lock.

    Completes a swap that was not recorded, and removes what was not finished: fetched files stay in caches.
    What ``current`` names is never touched. Raises Cannot, NotPutBack.
    """
    try:
        root.next.unlink(missing_ok=True)
        in_use = root.current_id() or ""
        step = journal.last_steps().get(in_use)
        if step == "verified":
            journal.append(in_use, "swapped", why="found in use")
        if step in ("verified", "swapped"):
            complete(root, journal, in_use)
        for version in map(root.version, unfinished(root, journal)):
            if version.is_directory:
                tell(f"{version.directory}: removing what an interrupted installation left")
            removal.discard(root, version)
            journal.append(version.id, "undone", why="cut off")
        removal.empty(root)
    except OSError as error:
        raise Cannot(
            f"{cause(error, root)}: an installation that was cut off cannot be put in order",
            hint=durable.advice(error),
        ) from None
    except NotPutBack as error:
        raise NotPutBack(
            f"an interrupted installation cannot be removed: {error}",
            hint=error.hint or f"remove {root.removing} yourself, and try again",
        ) from None


def complete(root: Root, journal: Journal, version_id: str) -> list[str]:
    """What comes after a swap that is in the journal already; returns sentences as ``current.use``."""
    if notes := remember(root):
        return notes
    try:
        journal.append(version_id, "done")
    except OSError as error:
        return [f"{cause(error, root)}; the next run records it"]
    return []


def remember(root: Root) -> list[str]:
    """Make it the environment installed last, or say why that was not possible."""
    try:
        roots.remember(root)
    except OSError as error:
        return [
            f"it could not be recorded as the one installed last ({cause(error, root)}): name it to envcheck"
            " doctor with --target"
        ]
    return []


def cause(error: OSError, root: Root) -> str:
    return f"{error.filename or root.path}: {error.strerror}"


def undo(
    root: Root, journal: Journal, version: Version, what: str, error: BaseException, tell: Tell
) -> None:
    """Roll back an unfinished version, then raise the error to show (PutBack, NotPutBack).

    Returns where ``error`` itself is that: Ctrl-C, the end of the process.
    """
    if root.current_id() == version.id:  # what comes after the swap does not undo it
        tell(f"{what} is installed: it was too late to stop")
        return
    logs = _keep_logs(root, version)
    try:
        removal.discard(root, version)
    except NotPutBack as failed:
        raise NotPutBack(
            f"{what} was not installed ({_sentence(error)}), and something of it is left: {failed}",
            hint=f"what is in use has not changed; {failed.hint or f'remove {root.removing} yourself'}",
        ) from error
    with suppress(OSError):  # the next run sees that there is nothing to undo
        journal.append(version.id, "undone", why=type(error).__name__)
    undone = f"{what} was not installed, and nothing has changed"
    if not isinstance(error, Exception):
        tell(f"{undone}; downloads are kept")
        return
    raise PutBack(f"{undone}: {_sentence(error)}", hint=_hint(error, version, logs)) from error


def _hint(error: BaseException, version: Version, kept: Path | None) -> str:
    """The error's own, with the place to which the logs that it may name were moved."""
    hint = error.hint if isinstance(error, EnvcheckError) else ""
    hint = durable.advice(error) if isinstance(error, OSError) else hint
    if str(version.logs) in hint:
        hint = hint.replace(str(version.logs), str(kept)) if kept else ""
    return hint or (f"the log is in {kept}" if kept else "")


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError):
        return (
            f"{error.filename}: {error.strerror}"
            if error.filename
            else str(error.strerror or error)
        )
    if isinstance(error, EnvcheckError):
        return str(error)
    if isinstance(error, Exception):
        return f"internal error: {type(error).__name__}: {error}"
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "terminated"


def _keep_logs(root: Root, version: Version) -> Path | None:
    """Move the logs and the doctor's report out of a version that will be removed; None: there are none."""
    place = root.failed / version.id
    try:
        if version.logs.is_symlink():
            return None
        with suppress(FileNotFoundError):
            version.doctor.rename(version.logs / version.doctor.name)
        if not any(version.logs.iterdir()):
            return None
        root.failed.mkdir(exist_ok=True)
        shutil.rmtree(place, ignore_errors=True)
        version.logs.rename(place)
        newest = sorted(root.failed.iterdir(), key=lambda path: -path.stat().st_mtime_ns)
        for old in newest[_KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:  # the disk is full, as a rule
        return None
    return place


def dissolve(root: Root) -> list[Path]:
    """Remove our own files, the marker last, so that what is cut off stays ours. Returns what is not ours."""
    with suppress(OSError):
        roots.forget(root)
    foreign = root.foreign()
    with suppress(OSError, UnsafeRoot):
        guard.check(root)
        for path in sorted(root.own.iterdir(), key=lambda path: path == root.owner):
            with suppress(NotPutBack):
                removal.wipe(path)
        root.own.rmdir()  # not empty: an install that waited is there
        root.path.rmdir()
    return foreign
