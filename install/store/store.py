"""The store: files by their sha256, complete ones and partial ones.

A file gets its name by a rename after its hash was verified, so what is there is whole, also after a kill.
Nothing is synced to disk for that: what a crash of the machine can spoil is read once again, before its
first use after the next boot, and syncing gigabytes would cost every installation more than that.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from filelock import BaseFileLock, FileLock, Timeout

from . import errors
from .errors import FetchError

PIECE = 1 << 20  # bytes read at once

_SHA256 = re.compile(r"[0-9a-f]{64}")

# What file systems without locks say: NFS without its lock service, some FUSE and cluster file systems.
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class NoLocks(Exception):
    """The file system has no locks."""


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file in the store."""

    sha256: str
    size: int  # bytes
    complete: bool = True  # False: a download that was cut


class Store:
    """Safe for threads, and for several processes. Makes nothing until something is put into it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def path(self, sha256: str) -> Path:
        """Where the complete file is or will be."""
        return self.root / "files" / _checked(sha256)[:2] / sha256

    def partial(self, sha256: str) -> Path:
        """Where the file grows while it is fetched."""
        return self.root / "partial" / _checked(sha256)

    def lock_path(self, sha256: str) -> Path:
        """What is locked while the file is fetched or removed."""
        return self.root / "locks" / _checked(sha256)

    def has(self, sha256: str) -> bool:
        """Whether the complete file is there, as it was verified."""
        return self.size(sha256) is not None

    def size(self, sha256: str) -> int | None:
        """Bytes of the complete file; None: it is not there.

        One that was written to since it was verified, or not verified since the last boot, is read once
        more, and removed if it is damaged.
        """
        path = self.path(sha256)
        try:
            status = path.stat()
            if not self._is_verified(sha256, status):
                if hash_of(path) != sha256:
                    path.unlink()
                    return None
                self.verified(sha256)
        except OSError:
            return None
        return status.st_size

    def named(self, sha256: str, name: str) -> Path:
        """The complete file under ``name``, which installers read a wheel's tags from.

        The same path in every run, to a file that nobody touches: uv knows by both what it has unpacked
        already. Raises FetchError for a name that is none, or where it cannot be written.
        """
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise FetchError(f"{name!r} is not a file name")
        path = self.root / "named" / _checked(sha256) / name
        if not path.is_symlink():
            try:
                self.make_room_for(path)
                with suppress(FileExistsError):
                    path.symlink_to(Path("../..") / self.path(sha256).relative_to(self.root))
            except OSError as error:
                raise errors.of_disk(error, self.root, name, 0) from None
        return path

    def verified(self, sha256: str) -> None:
        """Note that the complete file is what it should be: in a file beside it, for uv unpacks one again
        whose times have changed."""
        stamp = self._stamp(sha256)
        with suppress(OSError):  # a store that cannot be written to is read
            self.make_room_for(stamp)
            stamp.write_text(_identity(self.path(sha256).stat()))

    def _is_verified(self, sha256: str, status: os.stat_result) -> bool:
        try:
            stamp = self._stamp(sha256)
            return stamp.stat().st_mtime >= self._booted and stamp.read_text() == _identity(status)
        except (OSError, UnicodeDecodeError):
            return False

    def _stamp(self, sha256: str) -> Path:
        return self.root / "used" / _checked(sha256)

    def make_room_for(self, path: Path) -> None:
        """Make the directories that hold a file of the store. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)

    def entries(self) -> Iterator[StoredFile]:
        """Everything there is, partial files too; what vanishes meanwhile is left out."""
        for folder, complete in (("files", True), ("partial", False)):
            pattern = "*/*" if complete else "*"
            for path in sorted((self.root / folder).glob(pattern)):
                sha256 = path.name[:64]
                if not _SHA256.fullmatch(sha256):
                    continue
                with suppress(OSError):
                    size = path.stat().st_size
                    yield StoredFile(sha256=sha256, size=size, complete=complete)

    def remove(self, sha256: str) -> int:
        """Remove a file, complete or partial: bytes that are free now.

        One that is just being fetched stays; so does what cannot be removed.
        """
        if not self.root.is_dir():
            return 0
        try:
            lock = take(self.lock_path(sha256))
            if lock is None:
                return 0
        except (NoLocks, OSError):
            lock = None
        try:
            partial = self.partial(sha256)
            private = partial.parent.glob(f"{sha256}.*")
            shutil.rmtree(self.root / "named" / sha256, ignore_errors=True)
            paths = [self.path(sha256), partial, *private, self._stamp(sha256)]
            return sum(map(_remove, [*paths, self.lock_path(sha256)]))
        finally:
            if lock is not None:
                lock.release()


def take(path: Path, timeout: float = 0.0) -> BaseFileLock | None:
    """The lock, so that several envchecks fetch a file once; None where another process (or another thread)
    still holds it after ``timeout`` seconds. -1: for ever.

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


def hash_of(path: Path) -> str:
    """The sha256 of a file. Raises OSError."""
    found = hashlib.sha256()
    piece = memoryview(bytearray(PIECE))
    with path.open("rb", buffering=0) as file:
        while length := file.readinto(piece):
            found.update(piece[:length])
    return found.hexdigest()


def _checked(sha256: str) -> str:
    """It becomes a file's name, and comes from an index. Raises FetchError for what is not a sha256."""
    if not _SHA256.fullmatch(sha256):
        raise FetchError(f"{sha256[:80]!r} is not a sha256")
    return sha256


def _identity(status: os.stat_result) -> str:
    """What changes when a file is written to, or replaced."""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _remove(path: Path) -> int:
    try:
        status = path.stat()
        path.unlink()
    except OSError:
        return 0
    return status.st_size if status.st_nlink == 1 else 0
