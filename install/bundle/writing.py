"""Writes a bundle: a directory or a tar, whole or not at all, each file verified on its way."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from ...exit_codes import Cannot, CouldNotLook, UsageError
from ..downloads import Downloads
from ..lockfile import LockedFile
from .index import NAME, BundleIndex

_CHUNK = 1 << 20
_PROGRAMS = ".sh"


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a bundle. ``source`` is its bytes, or where they lie."""

    source: bytes | Path
    sha256: str
    size: int

    @classmethod
    def of(cls, data: bytes) -> Content:
        return cls(source=data, sha256=hashlib.sha256(data).hexdigest(), size=len(data))

    @classmethod
    def stored(cls, downloads: Downloads, file: LockedFile) -> Content:
        """A file that was downloaded."""
        path = downloads.path(file)
        return cls(source=path, sha256=file.sha256, size=path.stat().st_size)


def write(target: Path, index: BundleIndex, contents: Mapping[str, Content]) -> None:
    """Write a bundle as ``put`` does."""
    text = msgspec.json.format(msgspec.json.encode(index), indent=1) + b"\n"
    whole = {NAME: Content.of(text), **dict(sorted(contents.items()))}
    check(target)
    put(target, whole, f"{target.stem}/")


def put(target: Path, contents: Mapping[str, Content], top: str = "") -> None:
    """Write a directory, or a tar where the name ends in .tar; it appears when it is whole.

    top: what names in a tar begin with. Raises UsageError where it cannot be written, Cannot where there is
    no room for it, CouldNotLook for a source that is not what its hash says. What failed leaves nothing.
    """
    try:
        with tempfile.TemporaryDirectory(
            dir=target.parent, prefix=f".{target.name}.", ignore_cleanup_errors=True
        ) as temporary:
            made = Path(temporary, target.name)
            if is_tar(target):
                _write_tar(made, contents, top)
            else:
                _write_directory(made, contents)
            made.rename(target)
    except OSError as error:
        kind = Cannot if error.errno in (errno.ENOSPC, errno.EDQUOT) else UsageError
        raise kind(f"--output {target}: {error.strerror or error}; nothing was written") from None


def is_tar(target: Path) -> bool:
    return target.suffix == ".tar"


def check(target: Path) -> None:
    """Refuse a target that cannot be written before the work is done, not after it."""
    if os.path.lexists(target):
        raise UsageError(f"--output {target}: this exists already; name another, or remove it")
    folder = target.parent
    if not folder.is_dir():
        raise UsageError(f"--output {target}: there is no directory {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--output {target}: no permission to write in {folder}")


def _write_directory(made: Path, contents: Mapping[str, Content]) -> None:
    for name, content in contents.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o777 if name.endswith(_PROGRAMS) else 0o666  # less the umask
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file, _verified(name, content) as source:
            shutil.copyfileobj(source, file, _CHUNK)
            file.flush()
            os.fsync(file.fileno())


def _write_tar(made: Path, contents: Mapping[str, Content], top: str) -> None:
    """Deterministic: names in the order of the contents, no owner, no times. top: what they begin with."""
    with made.open("wb") as file:
        options: dict[str, Any] = {"format": tarfile.PAX_FORMAT, "copybufsize": _CHUNK}
        with tarfile.open(fileobj=file, mode="w|", **options) as tar:
            for name, content in contents.items():
                entry = tarfile.TarInfo(f"{top}{name}")
                entry.size = content.size
                entry.mode = 0o755 if name.endswith(_PROGRAMS) else 0o644
                with _verified(name, content) as source:
                    tar.addfile(entry, source)
        file.flush()
        os.fsync(file.fileno())


class _Hashed:
    """Hashes what is read of a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.checksum = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.checksum.update(data)
        return data


@contextmanager
def _verified(name: str, content: Content) -> Iterator[_Hashed]:
    """A content to read. Raises CouldNotLook at the end where it is not what its hash says."""
    source = content.source
    with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
        hashed = _Hashed(file)
        yield hashed
        hashed.read(1)  # it may have grown
    if hashed.checksum.hexdigest() != content.sha256:
        raise CouldNotLook(
            f"{name}: the file in the store is damaged: it should have sha256 {content.sha256}, and has"
            f" {hashed.checksum.hexdigest()}",
            f"remove it, and it is fetched again: rm '{source!s}'",
        )
