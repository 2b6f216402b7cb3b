"""The store: files by their sha256, complete ones, partial ones, and wheels' metadata.

A file gets its name by a rename after its hash was verified, so what is there is whole, also after a kill.
Nothing is synced to disk for that: what a crash of the machine can spoil is read once again, before its
first use after the next boot, and syncing gigabytes would cost every installation more than that.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from . import errors, locking
from .errors import FetchError

PIECE = 1 << 20  # bytes read at once

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A file in the store."""

    sha256: str
    size: int  # bytes
    used_at: float  # seconds since 1970: written or last opened
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
        """Whether the complete file is there; after a boot it is read and verified first."""
        return self.size(sha256) is not None

    def size(self, sha256: str) -> int | None:
        """Bytes of the complete file; None: it is not there."""
        path = self.path(sha256)
        try:
            status = path.stat()
            if max(status.st_mtime, self._used_at(sha256)) >= self._booted:
                return status.st_size
            if hash_of(path) == sha256:
                self.touch(sha256)
                return status.st_size
            path.unlink()
        except OSError:
            pass
        return None

    def open(self, sha256: str) -> BinaryIO:
        """Open the complete file, and note that it is used. Raises FetchError where it is not there."""
        path = self.path(sha256)
        try:
            file = path.open("rb")
        except OSError as error:
            raise FetchError(f"{path} cannot be read: {error.strerror}") from None
        self.touch(sha256)
        return file

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
        self.touch(sha256)
        return path

    def touch(self, sha256: str) -> None:
        """Note that the file is used now. In a store that cannot be written to, nothing is noted.

        The file itself is left as it is: uv unpacks one again whose times have changed.
        """
        stamp = self._stamp(sha256)
        with suppress(OSError):
            self.make_room_for(stamp)
            stamp.touch()

    def _stamp(self, sha256: str) -> Path:
        return self.root / "used" / _checked(sha256)

    def _used_at(self, sha256: str) -> float:
        """Seconds since 1970; 0.0: it was never noted."""
        try:
            return self._stamp(sha256).stat().st_mtime
        except OSError:
            return 0.0

    def adopt(self, file: Path, sha256: str) -> Path:
        """Put a file that lies elsewhere into the store: a link where it can be, else a copy.

        Raises FetchError where it has another hash, or cannot be read or written.
        """
        path = self.path(sha256)
        if self.has(sha256):
            return path
        try:
            found = hash_of(file)
        except OSError as error:
            raise FetchError(f"{file} cannot be read: {error.strerror}") from None
        if found != sha256:
            raise errors.wrong_bytes(file.name, str(file.parent), sha256, found)
        try:
            self.make_room_for(path)
            _link_or_copy(file, path)
        except OSError as error:
            raise errors.of_disk(error, self.root, file.name, file.stat().st_size) from None
        self.touch(sha256)
        return path

    def make_room_for(self, path: Path) -> None:
        """Make the directories that hold a file of the store. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)

    def entries(self) -> Iterator[Entry]:
        """Everything there is, partial files too; what vanishes meanwhile is left out."""
        for folder, complete in (("files", True), ("partial", False)):
            pattern = "*/*" if complete else "*"
            for path in sorted((self.root / folder).glob(pattern)):
                sha256 = path.name[:64]
                if not _SHA256.fullmatch(sha256):
                    continue
                with suppress(OSError):
                    status = path.stat()
                    yield Entry(
                        sha256=sha256,
                        size=status.st_size,
                        used_at=max(status.st_mtime, self._used_at(sha256)),
                        complete=complete,
                    )

    def remove(self, sha256: str) -> int:
        """Remove a file, complete or partial, with its metadata: bytes that are free now.

        One that is just being fetched stays; so does what cannot be removed.
        """
        try:
            lock = locking.take(self.lock_path(sha256))
            if lock is None:
                return 0
        except (locking.NoLocks, OSError):
            lock = None
        try:
            partial = self.partial(sha256)
            private = partial.parent.glob(f"{sha256}.*")
            shutil.rmtree(self.root / "named" / sha256, ignore_errors=True)
            paths = [self.path(sha256), self._metadata_path(sha256), partial, *private]
            return sum(map(_remove, [*paths, self._stamp(sha256)]))
        finally:
            if lock is not None:
                lock.release()

    def metadata(self, sha256: str) -> bytes | None:
        """The METADATA of the wheel with this sha256, where it was kept."""
        try:
            head, _, data = self._metadata_path(sha256).read_bytes().partition(b"\n")
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest().encode() == head else None

    def put_metadata(self, sha256: str, data: bytes) -> None:
        """Keep a wheel's METADATA. A store that cannot be written to costs the keeping and not the run."""
        path = self._metadata_path(sha256)
        with suppress(OSError):
            self.make_room_for(path)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
            Path(file.name).replace(path)

    def _metadata_path(self, sha256: str) -> Path:
        return self.root / "metadata" / _checked(sha256)[:2] / sha256


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


def _link_or_copy(file: Path, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        copy = Path(folder) / path.name
        try:
            copy.hardlink_to(file)
        except OSError:  # another file system, or one without links
            shutil.copyfile(file, copy)
        copy.replace(path)


def _remove(path: Path) -> int:
    try:
        status = path.stat()
        path.unlink()
    except OSError:
        return 0
    return status.st_size if status.st_nlink == 1 else 0
