"""Reads tar archives that anybody may have written: only files' content is unbounded."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import BinaryIO, cast

HEADERS_OF_ONE = 1 << 20  # bytes: a member's header with its extensions; a name has 4 KiB at most
HEADERS_OF_ALL = 64 << 20  # bytes: of an archive with 100,000 members


class BoundedTar:
    """Its members, one after the other.

    Methods raise tarfile.TarError for what is not a whole tar, for headers that are too large and for sparse
    members, whose content takes no bytes in the archive; OSError for the file.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = _Counted(file)
        with self._file.header():
            self._tar = tarfile.TarFile.taropen("", fileobj=cast(BinaryIO, self._file))  # noqa: SIM115

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        while True:
            with self._file.header():
                member = self._tar.next()
            if member is None:
                return
            if member.issparse():
                raise tarfile.ReadError(f"{ascii(member.name)[1:-1][:100]} is a sparse file")
            if member.size < 0:
                raise tarfile.ReadError("a member's size is negative")
            self._tar.members.clear()  # type: ignore[attr-defined]
            member.pax_headers = {}
            yield member

    def open(self, member: tarfile.TarInfo) -> BinaryIO:
        """The content of a regular file."""
        found = self._tar.extractfile(member)
        assert found is not None, "only files are opened"
        return cast(BinaryIO, found)


class _Counted:
    """What tarfile reads from. As a context manager, it counts: what is read inside belongs to one header."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.tell = file.tell
        self._in_header = False
        self._remaining = HEADERS_OF_ONE
        self._remaining_of_all = HEADERS_OF_ALL
        self._end = 0  # of the last header

    def header(self) -> _Counted:
        self._remaining = HEADERS_OF_ONE
        return self

    def __enter__(self) -> None:
        self._in_header = True

    def __exit__(self, *_: object) -> None:
        self._in_header = False
        self._end = max(self._end, self.tell())
        self._remaining_of_all -= HEADERS_OF_ONE - self._remaining

    def seekable(self) -> bool:
        return True

    def read(self, size: int) -> bytes:
        if self._in_header:
            self._remaining -= size
            if size < 0 or self._remaining < 0 or self._remaining_of_all < 0:
                raise tarfile.ReadError("its headers are too large")
        return self._file.read(size)

    def seek(self, position: int) -> None:
        if self._in_header and position < self._end - 1:
            raise tarfile.ReadError("its members overlap")
        self._file.seek(position)
