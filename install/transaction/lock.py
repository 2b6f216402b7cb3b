"""Locks: one envcheck at a time in a root, and a version in which a command runs.

filelock takes the kernel's lock (flock) on ``.envcheck/lock``, which ends with its holder however that ends,
and an existence lock where the file system has none. ``holder.json`` beside it says who holds it.
"""

from __future__ import annotations

import errno
import fcntl
import getpass
import os
import socket
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Annotated

import msgspec
from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from ...exit_codes import Cannot
from .. import durable
from . import guard
from .layout import Root, Version, now

PAUSE = 0.2  # seconds between two tries

_BUSY = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}
_NO_FLOCK = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_EXISTENCE = "lock.exists"  # where the file system has no flock
_FIRST = 64  # of the descriptors that may be taken: shells and programs use low ones themselves


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds the lock. ``since`` is UTC."""

    host: str
    user: str
    pid: Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
    since: str
    what: str

    def __str__(self) -> str:
        return f"{self.user} on {self.host} (process {self.pid}, {self.what}, since {self.since})"


class Locked(Cannot):
    """Another envcheck holds the lock, and was not waited for any longer."""


class RootLock:
    """The lock of a root, as a context manager.

    what: for those who wait, "envcheck install tensorflow". wait: seconds to wait for another holder; None
    waits until it is over. tell: gets a sentence when waiting begins. prepare: called before each try, to
    make the root where another envcheck has just removed it.

    Whatever changes anything in a root takes its lock first. Raises UsageError for one that another user may
    have prepared, or that a newer envcheck has made.
    """

    def __init__(
        self,
        root: Root,
        what: str,
        *,
        wait: float | None = None,
        tell: Callable[[str], None] = lambda sentence: None,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._root = root
        self._what = what
        self._wait = wait
        self._tell = tell
        self._prepare = prepare
        self._lock: BaseFileLock = FileLock(root.lock, timeout=0)

    def __enter__(self) -> RootLock:
        limit = None if self._wait is None else time.monotonic() + self._wait
        told = ""
        while not self._try():
            holder = read_holder(self._root)
            who = str(holder) if holder else "another envcheck"
            if limit is not None and time.monotonic() >= limit:
                raise Locked(
                    f"{self._root.path}: {who} is at work here",
                    hint="try again when it is done, or give --wait SECONDS",
                )
            if who != told:
                self._tell(f"{self._root.path}: waiting for {who}; Ctrl-C gives up")
                told = who
            time.sleep(PAUSE)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):  # the root itself is gone, or the disk is
            self._root.holder.unlink(missing_ok=True)
        with suppress(OSError):
            self._lock.release()

    def _try(self) -> bool:
        self._prepare()
        try:
            guard.check(self._root)
            guard.is_root(self._root.path)  # raises for a newer layout
            self._acquire()
            try:
                if self._take_note():
                    return True
            except BaseException:
                self._lock.release()
                raise
            self._lock.release()
            return False
        except Timeout:
            return False
        except FileNotFoundError:
            if self._root.own.is_dir():
                return False  # the root was removed and made again in between
            raise Cannot(
                f"{self._root.path}: there is no environment of envcheck's any more"
            ) from None
        except OSError as error:
            raise Cannot(
                f"{error.filename or self._root.lock}: cannot be locked: {error.strerror}",
                hint=durable.advice(error) or "envcheck needs to write there",
            ) from None

    def _acquire(self) -> None:
        """Raises Timeout where somebody holds it, OSError."""
        if not self._root.own.is_dir():
            raise FileNotFoundError(errno.ENOENT, "there is no such directory", str(self._root.own))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of its own change to an existence lock
                self._lock.acquire()
        except OSError as error:
            if isinstance(error, Timeout) or error.errno not in _NO_FLOCK:
                raise
            self._lock = SoftFileLock(self._root.own / _EXISTENCE, timeout=0)
            self._lock.acquire()

    def _take_note(self) -> bool:
        """Write down who holds it; False where the locked file is no longer the root's. Raises OSError.

        A root that was removed and made again has another file, and so has one whose ``.envcheck/`` was
        exchanged for a link between the look at it and the lock.
        """
        with guard.opened(self._root) as (_, own):
            if not _is_locked(self._root, own) and not isinstance(self._lock, SoftFileLock):
                return False
            holder = Holder(
                host=socket.gethostname(),
                user=_user(),
                pid=os.getpid(),
                since=now(),
                what=self._what,
            )
            with durable.named(self._root.holder):
                for name in os.listdir(own):  # noqa: PTH208, of a descriptor
                    if name.startswith(f".{self._root.holder.name}."):  # of a killed holder
                        os.unlink(name, dir_fd=own)
                durable.write(self._root.holder, msgspec.json.encode(holder), within=own)
        return True


def read_holder(root: Root) -> Holder | None:
    """Who is written down as the lock's holder."""
    try:
        return durable.load(root.holder, Holder)
    except (OSError, msgspec.DecodeError):
        return None


def holder_at_work(root: Root) -> Holder | None:
    """Who holds the lock at this moment, as far as can be told without waiting; writes nothing."""
    holder = read_holder(root)
    try:
        return holder if holder is not None and _is_locked(root) else None
    except OSError:
        return None


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
