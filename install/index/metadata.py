"""A wheel's METADATA without the wheel: beside it, else out of its tail by ranges, else from all of it."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

from ...exit_codes import CouldNotLook
from . import wheel_zip
from .simple import IndexBroken, ProjectFile

if TYPE_CHECKING:
    import requests
    from _typeshed import WriteableBuffer

    from ..network.session import Session
    from ..store.store import Store

TAIL = 64 * 1024  # bytes: holds the central directory of most wheels, and all of a small one
LARGEST = 8 * 1024 * 1024  # bytes of METADATA; the largest seen on the registry is below 1 MiB


class NoRanges(Exception):
    """The server gives no parts of files."""


def metadata(
    session: Session,
    store: Store,
    file: ProjectFile,
    whole: Callable[[], BinaryIO],
    sized: Callable[[int], None] = lambda size: None,
) -> bytes:
    """The METADATA of a wheel, kept in the store by the wheel's sha256: asked for once in a lifetime.

    whole: opens the complete wheel, for a server that gives no ranges. sized: is told the wheel's size in
    bytes where it comes to light. Raises IndexBroken for metadata that
    is not what the index announced or no metadata at all, CouldNotLook where the index does not answer.
    """
    kept, size = _kept(store, file)
    if size is not None:
        sized(size)
    if kept is not None:
        return kept
    data = _from_store(store, file)
    if data is None and file.metadata:
        data = _beside(session, file)
    if data is None:
        data, size = _from_wheel(session, file, whole)
        if size is not None:
            sized(size)
    if not data.startswith(b"Metadata-Version:") and b"\nMetadata-Version:" not in data[:4096]:
        raise IndexBroken(f"the metadata of {file.filename} at {session.public(file.url)} is none")
    if file.sha256:
        _keep(store, file.sha256, data, size)
    return data


def kept_size(store: Store, file: ProjectFile) -> int | None:
    """A wheel's size in bytes as an earlier run has kept it: an installer may know the metadata itself."""
    return _kept(store, file)[1]


def keep_size(store: Store, file: ProjectFile, size: int) -> None:
    """Keep a wheel's size in bytes, beside its metadata, so that the next resolution need not ask for it."""
    data, known = _kept(store, file)
    if data is not None and size != known:
        _keep(store, file.sha256, data, size)


_SIZE = b"size "  # no METADATA begins so


def _keep(store: Store, sha256: str, data: bytes, size: int | None) -> None:
    head = b"" if size is None else _SIZE + str(size).encode() + b"\n"
    store.put_metadata(sha256, head + data)


def _kept(store: Store, file: ProjectFile) -> tuple[bytes | None, int | None]:
    """The metadata and the size that an earlier run has kept."""
    kept: bytes | None = store.metadata(file.sha256) if file.sha256 else None
    if kept is None or not kept.startswith(_SIZE):
        return kept, None
    size, _, data = kept.removeprefix(_SIZE).partition(b"\n")
    return data, int(size)


def _from_store(store: Store, file: ProjectFile) -> bytes | None:
    if not file.sha256 or not store.has(file.sha256):
        return None
    with store.open(file.sha256) as wheel:
        return _read(wheel, file.filename)


def _beside(session: Session, file: ProjectFile) -> bytes | None:
    """PEP 658's file; None where it is announced and not there."""
    parts = urlsplit(file.url)
    url = parts._replace(path=parts.path + ".metadata").geturl()
    try:
        with session.get(url) as response:
            data = _bounded(response, LARGEST, file.filename)
    except CouldNotLook as error:
        if getattr(error, "status", None) == 404:
            return None
        raise
    has = hashlib.sha256(data).hexdigest()
    if file.metadata not in ("true", has):
        raise IndexBroken(
            f"the metadata of {file.filename} at {session.public(url)} has the sha256 {has}, "
            f"and the index announced {file.metadata}"
        )
    return data


def _from_wheel(
    session: Session, file: ProjectFile, whole: Callable[[], BinaryIO]
) -> tuple[bytes, int | None]:
    """METADATA, and the wheel's size where that has come to light."""
    try:
        parts = Ranged(session, file.url, file.filename)
        return _read(parts, file.filename), parts.size
    except NoRanges:
        with whole() as wheel:
            return _read(wheel, file.filename), None


def _read(wheel: BinaryIO | io.RawIOBase, filename: str) -> bytes:
    """METADATA out of a wheel; its checksum in the archive is looked at."""
    try:
        return wheel_zip.read(wheel, "-".join(filename.split("-")[:2]).lower(), LARGEST)
    except wheel_zip.NoMetadata:
        raise IndexBroken(f"{filename} holds no METADATA of its own: it is not a wheel") from None
    except wheel_zip.TooLarge:
        raise IndexBroken(
            f"the METADATA of {filename} is larger than {LARGEST >> 20} MiB"
        ) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise IndexBroken(f"{filename} is a broken wheel: {error}") from None


class Ranged(io.RawIOBase):
    """A remote file, read by ranges; its tail comes with the first of them.

    Raises NoRanges where the server has none, IndexBroken where the file changes in between.
    """

    def __init__(self, session: Session, url: str, filename: str) -> None:
        self._session = session
        self._url = url
        self._filename = filename
        self._at = 0
        self._blocks: list[tuple[int, bytes]] = []
        self.size = -1
        self._fetch(f"bytes=-{TAIL}")

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self.size - self._at)
        if wanted <= 0:
            return 0
        start, block = self._block(wanted)
        inside = self._at - start
        piece = block[inside : inside + wanted]
        view[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _block(self, wanted: int) -> tuple[int, bytes]:
        for start, block in self._blocks:
            if start <= self._at < start + len(block):
                return start, block
        # Reads of a few bytes follow one another: a local header, then its file.
        last = min(self.size, self._at + max(wanted, TAIL)) - 1
        return self._fetch(f"bytes={self._at}-{last}")

    def _fetch(self, asked: str) -> tuple[int, bytes]:
        headers = {"Range": asked, "Accept-Encoding": "identity"}
        try:
            with self._session.get(self._url, headers=headers) as response:
                if response.status_code != 206:
                    raise NoRanges
                start, last, size = _content_range(response.headers.get("Content-Range", ""))
                data = _bounded(response, last - start + 1, self._filename)
        except CouldNotLook as error:
            if getattr(error, "status", None) in (400, 405, 416, 501):
                raise NoRanges from None
            raise
        if self.size not in (-1, size) or len(data) != last - start + 1:
            raise IndexBroken(f"{self._filename} changed at the index while it was read")
        self.size = size
        self._blocks.append((start, data))
        return start, data


def _content_range(header: str) -> tuple[int, int, int]:
    """First and last byte, and the file's size: "bytes 0-65535/400000"."""
    unit, _, rest = header.partition(" ")
    span, _, size = rest.partition("/")
    first, _, last = span.partition("-")
    try:
        found = int(first), int(last), int(size)
    except ValueError:
        raise NoRanges from None
    if unit != "bytes" or not 0 <= found[0] <= found[1] < found[2]:
        raise NoRanges
    return found


def _bounded(response: requests.Response, limit: int, filename: str) -> bytes:
    data = bytearray()
    for piece in response.iter_content(TAIL):
        data += piece
        if len(data) > limit:
            raise IndexBroken(f"the index sends more of {filename} than was asked for")
    return bytes(data)
