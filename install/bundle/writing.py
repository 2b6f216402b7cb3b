"""Writes a bundle: a directory or a tar, whole or not at all, each file verified on its way."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ...exit_codes import Cannot, CouldNotLook, UsageError
from .index import NAME, BundleIndex

OPTION = "--output "
_CHUNK = 1 << 20


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a bundle. ``source`` is its bytes, or where they lie."""

    source: bytes | Path
    sha256: str
    size: int

    @classmethod
    def of(cls, data: bytes) -> Content:
        return cls(source=data, sha256=hashlib.sha256(data).hexdigest(), size=len(data))


def write(target: Path, index: BundleIndex, contents: Mapping[str, Content]) -> None:
    """Write a directory, or a tar where the name ends in .tar; it appears when it is whole.

    An image's files lie at the top of its tar, where engines look for them; a wheel bundle's in a directory.
    Raises UsageError where it exists or cannot be written, Cannot where there is no room for it,
    CouldNotLook for a source that is not what its hash says. Of what failed, nothing is left.
    """
    text = msgspec.json.format(msgspec.json.encode(index), indent=1) + b"\n"
    whole = {NAME: Content.of(text)}
    whole |= dict(sorted(contents.items()))
    put(target, whole, top="" if index.mode == "container" else f"{target.stem}/")


def put(target: Path, contents: Mapping[str, Content], *, top: str, option: str = OPTION) -> None:
    """The same for any contents, in their order.

    top: what a tar's names begin with. option: what named the target, for errors.
    """
    check(target, option)
    check_room(target, sum(content.size for content in contents.values()), option)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        made = temporary / target.name
        if is_tar(target):
            _write_tar(made, contents, top)
        else:
            _write_directory(made, contents)
        made.rename(target)
    except OSError as error:
        kind = Cannot if error.errno in (errno.ENOSPC, errno.EDQUOT) else UsageError
        raise kind(f"{option}{target}: {error.strerror or error}; nothing was written") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def is_tar(target: Path) -> bool:
    return target.suffix == ".tar"


def check(target: Path, option: str = OPTION) -> None:
    """Refuse a target that cannot be written before the work is done, not after it."""
    if os.path.lexists(target):
        raise UsageError(f"{option}{target}: this exists already; name another, or remove it")
    folder = target.parent
    if not folder.is_dir():
        raise UsageError(f"{option}{target}: there is no directory {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{option}{target}: no permission to write in {folder}")


def check_room(target: Path, needed: int, option: str = OPTION) -> None:
    """Raises Cannot where that many bytes do not fit beside what is there."""
    free = shutil.disk_usage(target.parent).free
    if free < needed:
        raise Cannot(
            f"{option}{target}: not enough space: it takes {needed >> 20} MiB, and {target.parent} has"
            f" {free >> 20} MiB: {(needed - free >> 20) + 1} MiB more needed"
        )


def _write_directory(made: Path, contents: Mapping[str, Content]) -> None:
    for name, content in contents.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            _copy(name, content, file)
            file.flush()
            os.fsync(file.fileno())
        if name.endswith(".sh"):
            path.chmod(path.stat().st_mode | 0o111 & ~_umask())


def _write_tar(made: Path, contents: Mapping[str, Content], top: str) -> None:
    """Deterministic: names in the order of the contents, no owner, no times."""
    with made.open("wb") as file:
        options: dict[str, Any] = {"format": tarfile.PAX_FORMAT, "copybufsize": _CHUNK}
        with tarfile.open(fileobj=file, mode="w|", **options) as tar:
            for name, content in contents.items():
                entry = tarfile.TarInfo(f"{top}{name}")
                entry.size = content.size
                entry.mode = 0o755 if name.endswith(".sh") else 0o644
                with _Verified(name, content) as source:
                    tar.addfile(entry, source)
        file.flush()
        os.fsync(file.fileno())


def _copy(name: str, content: Content, target: BinaryIO) -> None:
    with _Verified(name, content) as source:
        while chunk := source.read(_CHUNK):
            target.write(chunk)


class _Verified(io.RawIOBase):
    """Reads a content, and raises at its end where it is not what its hash says."""

    def __init__(self, name: str, content: Content) -> None:
        self._name = name
        self._content = content
        self._told = hashlib.sha256()
        self._left = content.size
        source = content.source
        self._file: BinaryIO = (
            io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
        )

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(size, _CHUNK) if size >= 0 else -1)
        self._told.update(data)
        self._left -= len(data)
        if self._left <= 0 or not data:
            self._check()
        return data

    def _check(self) -> None:
        if self._left or self._told.hexdigest() != self._content.sha256:
            raise CouldNotLook(
                f"{self._name}: the file in the store is damaged: it should have sha256"
                f" {self._content.sha256}, and has {self._told.hexdigest()}",
                f"remove it, and it is fetched again: rm '{self._content.source!s}'",
            )

    def close(self) -> None:
        self._file.close()
        super().close()


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
