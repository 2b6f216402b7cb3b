"""The files of an archive or a directory, where they lie: read in place, never unpacked by a name in it."""

from __future__ import annotations

import hashlib
import io
import posixpath
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from ...exit_codes import UsageError

_CHUNK = 1 << 20
_MOST_LINKS = 8  # from one name to the next
_COMPRESSED = {
    b"\x1f\x8b": ("gzip", "gunzip"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"\xfd7zXZ": ("xz", "unxz"),
    b"BZh": ("bzip2", "bunzip2"),
}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes in a file: a member of a tar, or a file of its own."""

    path: Path
    offset: int
    size: int

    def open(self) -> BinaryIO:
        """Each with a place of its own to read from. Raises OSError."""
        return io.BufferedReader(_Part(self), _CHUNK)

    def sha256(self, pass_on: Callable[[bytes], object] | None = None) -> str:
        """Of all of it, each piece of which is passed on, too. Raises OSError."""
        found = hashlib.sha256()
        with self.open() as file:
            while piece := file.read(_CHUNK):
                found.update(piece)
                if pass_on is not None:
                    pass_on(piece)
        return found.hexdigest()


class Members:
    """By name. Raises UsageError for what cannot be read, or is no whole tar."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._path = Path(place)
        self._tar = None if self._path.is_dir() else self._table()

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    @property
    def is_tar(self) -> bool:
        return self._tar is not None

    def find(self, name: str) -> Place | None:
        """Where the file of that name lies; None where there is none. Links inside a tar are followed."""
        if self._tar is None:
            path = self._path / name
            try:
                return (
                    Place(path=path, offset=0, size=path.stat().st_size) if path.is_file() else None
                )
            except OSError:
                return None
        for _ in range(_MOST_LINKS):
            member = self._tar.get(name)
            if member is None or not (member.issym() or member.islnk()):
                break
            folder = posixpath.dirname(name) if member.issym() else ""
            name = posixpath.normpath(posixpath.join(folder, member.linkname))
        if member is None or member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            return None
        return Place(path=self._path, offset=member.offset_data, size=member.size)

    def small(self, name: str, limit: int) -> bytes:
        """A whole small file. Raises UsageError where it is not there, or has more bytes than that."""
        place = self.find(name)
        if place is None:
            raise UsageError(f"{self.place}: {name} is not in it")
        if place.size > limit:
            raise UsageError(f"{self.place}: {name} has {place.size} bytes, and may have {limit}")
        try:
            with place.open() as file:
                return file.read()
        except OSError as error:
            raise UsageError(f"{self.place}: {name}: {error.strerror or error}") from None

    def _table(self) -> dict[str, tarfile.TarInfo]:
        """By name. A name that is there twice would be one file to one program, and another to the next."""
        found: dict[str, tarfile.TarInfo] = {}
        try:
            self._refuse_compressed()
            with tarfile.TarFile.taropen(self._path) as tar:
                for member in tar:
                    name = posixpath.normpath(member.name)
                    if name in found and not (member.isdir() and found[name].isdir()):
                        raise UsageError(f"{self.place}: {name!a} is in it twice")
                    found[name] = member
        except tarfile.TarError as error:
            raise UsageError(f"{self.place}: this is not a whole tar: {error}") from None
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else None
            raise UsageError(f"{self.place}: {words or error}") from None
        return found

    def _refuse_compressed(self) -> None:
        with self._path.open("rb") as file:
            head = file.read(8)
        for magic, (name, program) in _COMPRESSED.items():
            if head.startswith(magic):
                raise UsageError(
                    f"{self.place}: this is compressed with {name}, and an archive is read in place",
                    f"unpack it first: {program} FILE",
                )


class _Part(io.RawIOBase):
    def __init__(self, place: Place) -> None:
        self._left = place.size
        self._file = place.path.open("rb", buffering=0)
        self._file.seek(place.offset)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        wanted = memoryview(buffer)[: min(len(buffer), self._left)]
        length = self._file.readinto(wanted) or 0
        self._left -= length
        return length

    def close(self) -> None:
        self._file.close()
        super().close()
