"""Locks: one envcheck at a time in a root, and a version in which a command runs.

Both are the kernel's (flock), which end with their holder however that ends. The root's lock file says who
holds it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ...exit_codes import Cannot
from ...safe_text import one_line
from .. import durable, places
from . import guard
from .layout import Root, Version, now

_PAUSE = 0.2  # seconds between two tries
_BUSY = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}
_UNKNOWN = "another envcheck"
_FIRST = 64  # of the descriptors that may be taken: shells and programs use low ones themselves


@contextmanager
def locked(
    root: Root,
    what: str,
    *,
    wait: float | None = None,
    tell: Callable[[str], None] = lambda sentence: None,
    make: bool = False,
) -> Iterator[None]:
    """Hold the lock of a root, which whatever changes anything in it takes first.

    what: for those who wait, "envcheck install tensorflow". wait: seconds; None: without an end. make: the
    root, where there is none. Raises UsageError as ``guard.check``; Cannot where it cannot be locked, or
    another holder was not waited for any longer.
    """
    places.check_home()
    limit = None if wait is None else time.monotonic() + wait
    shown = ""
    while (handle := _try(root, what, make)) is None:
        who = _holder(root)
        if limit is not None and time.monotonic() >= limit:
            raise Cannot(
                f"{root.path}: {who} is at work here",
                hint="try again when it is done, or give --wait SECONDS",
            )
        if who != shown:
            tell(f"{root.path}: waiting for {who}; Ctrl-C gives up")
            shown = who
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        with suppress(OSError):
            os.ftruncate(handle, 0)
        os.close(handle)


def _try(root: Root, what: str, make: bool) -> int | None:
    """The locked descriptor; None where another process holds it, or the root was just exchanged."""
    if make:
        guard.claim(root)
    try:
        guard.check(root)
        guard.is_root(root.path)  # raises for a newer layout
        handle = durable.opened(root.lock, os.O_RDWR | os.O_CREAT)
        if os.fstat(handle).st_nlink > 1:  # another file's name must not get our line
            root.lock.unlink()
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), root.lock.lstat()):
                user = f"user {os.getuid()} on {socket.gethostname()}"
                who = f"{user} (process {os.getpid()}, {what}, since {now()})"
                with durable.named(root.lock):
                    os.ftruncate(handle, 0)
                    os.pwrite(handle, who.encode(), 0)
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
    except FileNotFoundError:
        if not root.own.is_dir():  # else it was removed and made again in between
            raise Cannot(f"{root.path}: there is no environment of envcheck's any more") from None
    except OSError as error:
        if error.errno in _BUSY and error.filename is None:
            return None
        raise Cannot(
            f"{error.filename or root.lock}: cannot be locked: {error.strerror}",
            hint=durable.advice(error) or "envcheck needs to write there, and locks (flock)",
        ) from None
    return None


def holder_at_work(root: Root) -> str:
    """Who holds the lock at this moment; "" where nobody does. Writes nothing."""
    try:
        handle = durable.opened(root.lock, os.O_RDONLY)
    except OSError:
        return ""
    return "" if _free(handle, fcntl.LOCK_SH) else _holder(root)


def hold(version: Version) -> None:
    """Mark the version as in use by this process and what it becomes: a shared lock on a file of the version
    that is never replaced, which children inherit."""
    with suppress(OSError):
        handle = durable.opened(version.files, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.fcntl(handle, fcntl.F_DUPFD, _FIRST)  # the copy is inherited
        finally:
            os.close(handle)


def is_busy(version: Version) -> bool:
    """Whether a command that `envcheck run` started is still running in it."""
    try:
        handle = durable.opened(version.files, os.O_RDONLY)
    except OSError:
        return False
    return not _free(handle, fcntl.LOCK_EX)


def _holder(root: Root) -> str:
    with suppress(OSError):
        return one_line(durable.read(root.lock).decode("utf-8", "replace")[:300]) or _UNKNOWN
    return _UNKNOWN


def _free(handle: int, kind: int) -> bool:
    """Whether such a lock can be had; closes the descriptor. Where there are no locks it is free."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _BUSY
    finally:
        os.close(handle)
    return True
