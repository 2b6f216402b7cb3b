"""One lock for each file of the store, so that several envchecks fetch it once."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

# What file systems without locks say: NFS without its lock service, some FUSE and cluster file systems.
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class NoLocks(Exception):
    """The file system has no locks."""


def take(path: Path, timeout: float = 0.0) -> BaseFileLock | None:
    """The lock; None where another process (or another thread) still holds it after ``timeout`` seconds.

    Raises NoLocks, or OSError where the file cannot be made.
    """
    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except Timeout:
        return None
    except NotImplementedError:  # filelock's word for it
        raise NoLocks from None
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise NoLocks from None
        raise
    return lock


class SharedLock:
    """A lock that any number of processes hold together; it ends with the process that holds it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def alone(self) -> bool:
        """Whether nobody else holds it; from then on, nobody else gets it. False: it is no longer held."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        os.close(self._descriptor)


def share(path: Path) -> SharedLock:
    """Hold it together with others, which filelock's locks do not do; waits for one who is ``alone``.

    Raises NoLocks, or OSError where the file cannot be made.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except OSError as error:
        os.close(descriptor)
        if error.errno in _NO_LOCKS:
            raise NoLocks from None
        raise
    return SharedLock(descriptor)
