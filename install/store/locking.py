"""One lock for each file of the store, so that several envchecks fetch it once."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

# What file systems without locks say: NFS without its lock service, some FUSE and cluster file systems.
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class NoLocks(Exception):
    """The file system has no locks."""


class Lock:
    """A lock that is held; it ends with the process that holds it, however that ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        # First the name, then the lock: who opened the name before looks whether it is still there.
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


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
    """Hold it together with others; waits for one who is ``alone``. Its file stays.

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


def take(path: Path) -> Lock | None:
    """The lock, or None where another process (or another thread) holds it. Never waits.

    Raises NoLocks, or OSError where the file cannot be made.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, descriptor):
                return Lock(path, descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            os.close(descriptor)
            if error.errno in _NO_LOCKS:
                raise NoLocks from None
            raise
        os.close(descriptor)  # it was released, and removed, between the opening and the locking


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
