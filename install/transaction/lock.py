"""Locks: one envcheck at a time in a root, and a version in which a command runs.

filelock takes the kernel's lock (flock) on ``.envcheck/lock``, which ends with its holder however that ends,
and an existence lock where the file system has none. ``holder`` beside it says who holds it.
"""

from __future__ import annotations

import errno
import fcntl
import getpass
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from ...exit_codes import Cannot
from ...safe_text import one_line
from .. import durable, places
from . import guard
from .layout import Root, Version, now

PAUSE = 0.2  # seconds between two tries

_BUSY = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}
_NO_FLOCK = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_EXISTENCE = "lock.exists"  # where the file system has no flock
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
    """Hold the lock of a root. Whatever changes anything in a root takes its lock first.

    what: for those who wait, "envcheck install tensorflow". wait: seconds to wait for another holder; None
    waits until it is over. tell: gets a sentence when waiting begins. make: the root,
    where there is none or another envcheck has just removed it.

    Raises UsageError for a root that another user may have prepared, or that a newer envcheck has made,
    Cannot where it cannot be locked, or another holder was not waited for any longer.
    """
    places.check_home()
    limit = None if wait is None else time.monotonic() + wait
    told = ""
    while (lock := _try(root, what, make)) is None:
        who = _holder(root) or _UNKNOWN
        if limit is not None and time.monotonic() >= limit:
            raise Cannot(
                f"{root.path}: {who} is at work here",
                hint="try again when it is done, or give --wait SECONDS",
            )
        if who != told:
            tell(f"{root.path}: waiting for {who}; Ctrl-C gives up")
            told = who
        time.sleep(PAUSE)
    try:
        yield
    finally:
        with suppress(OSError):  # the root itself is gone, or the disk is
            root.holder.unlink(missing_ok=True)
        with suppress(OSError):
            lock.release()


def _try(root: Root, what: str, make: bool) -> BaseFileLock | None:
    if make:
        guard.claim(root)
    try:
        guard.check(root)
        guard.is_root(root.path)  # raises for a newer layout
        lock = _acquired(root)
        try:
            if _write_holder(root, what, lock):
                return lock
        except BaseException:
            lock.release()
            raise
        lock.release()
    except Timeout:
        return None
    except FileNotFoundError:
        if not root.own.is_dir():  # else it was removed and made again in between
            raise Cannot(f"{root.path}: there is no environment of envcheck's any more") from None
    except OSError as error:
        raise Cannot(
            f"{error.filename or root.lock}: cannot be locked: {error.strerror}",
            hint=durable.advice(error) or "envcheck needs to write there",
        ) from None
    return None


def _acquired(root: Root) -> BaseFileLock:
    """Raises Timeout where somebody holds it, OSError."""
    if not root.own.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such directory", str(root.own))
    lock: BaseFileLock = FileLock(root.lock, timeout=0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own change to an existence lock
            lock.acquire()
    except OSError as error:
        if isinstance(error, Timeout) or error.errno not in _NO_FLOCK:
            raise
        lock = SoftFileLock(root.own / _EXISTENCE, timeout=0)
        lock.acquire()
    return lock


def _write_holder(root: Root, what: str, lock: BaseFileLock) -> bool:
    """Write down who holds the lock; False where the locked file is no longer the root's. Raises OSError.

    A root that was removed and made again has another file, and so has one whose ``.envcheck/`` was
    exchanged for a link between the look at it and the lock.
    """
    who = f"{_user()} on {socket.gethostname()} (process {os.getpid()}, {what}, since {now()})"
    with guard.opened(root) as (_, own):
        if not _is_locked(root, own) and not isinstance(lock, SoftFileLock):
            return False
        with durable.named(root.holder):
            for name in os.listdir(own):  # noqa: PTH208, of a descriptor
                if name.startswith(f".{root.holder.name}."):  # of a killed holder
                    os.unlink(name, dir_fd=own)
            durable.write(root.holder, who.encode(), within=own)
    return True


def _holder(root: Root) -> str:
    """Who is written down as the lock's holder; "" where nobody is."""
    try:
        return one_line(durable.read(root.holder).decode("utf-8", "replace")[:300])
    except OSError:
        return ""


def holder_at_work(root: Root) -> str:
    """Who holds the lock at this moment, as far as can be told without waiting; writes nothing."""
    try:
        return (_holder(root) or _UNKNOWN) if _is_locked(root) else ""
    except OSError:
        return ""


def hold(version: Version) -> None:
    """From here on this process, and what it becomes, is seen to run in the version.

    It inherits a shared lock on a file of the version that is never replaced, and passes it on to what it
    starts itself; the kernel gives it back with the last of them. Without such locks nobody can tell.
    """
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


def _is_locked(root: Root, within: int | None = None) -> bool:
    """Whether somebody, this process included, holds the lock of the file that is there now. Raises OSError.

    within: a descriptor of the root's ``.envcheck/``.
    """
    if (root.own / _EXISTENCE).exists():
        return True
    try:
        return not _free(durable.opened(root.lock, os.O_RDONLY, within), fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _free(handle: int, kind: int) -> bool:
    """Whether such a lock can be had; closes the descriptor. Where there are no locks it is free."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _BUSY
    finally:
        os.close(handle)
    return True


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        return f"user {os.getuid()}"
