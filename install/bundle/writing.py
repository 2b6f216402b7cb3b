"""Writes a bundle: a directory or a tar, whole or not at all."""

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
from typing import IO

import msgspec

from ...exit_codes import Cannot, UsageError
from ..downloads import Downloads
from ..lockfile import LockedFile
from .index import NAME, BundleIndex

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

    def opened(self) -> IO[bytes]:
        source = self.source
        return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def write(target: Path, index: BundleIndex, contents: Mapping[str, Content]) -> None:
    """Write a directory, or a tar where the name ends in .tar; it appears when it is whole.

    Raises UsageError where it cannot be written, Cannot where the file system is full. What failed leaves
    nothing.
    """
    text = msgspec.json.format(msgspec.json.encode(index), indent=1) + b"\n"
    whole = {NAME: Content.of(text), **dict(sorted(contents.items()))}
    check(target)
    try:
        with tempfile.TemporaryDirectory(
            dir=target.parent, prefix=f".{target.name}.", ignore_cleanup_errors=True
        ) as temporary:
            made = Path(temporary, target.name)
            (_write_tar if is_tar(target) else _write_directory)(made, whole)
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
        with path.open("xb") as file, content.opened() as source:
            shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())
        if name.endswith(_PROGRAMS):
            mode = path.stat().st_mode
            path.chmod(mode | (mode & 0o444) >> 2)


def _write_tar(made: Path, contents: Mapping[str, Content]) -> None:
    """Deterministic: names in the order of the contents, no owner, no times."""
    with made.open("xb") as file:
        with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for name, content in contents.items():
                entry = tarfile.TarInfo(f"{made.stem}/{name}")
                entry.size = content.size
                entry.mode = 0o755 if name.endswith(_PROGRAMS) else 0o644
                with content.opened() as source:
                    tar.addfile(entry, source)
        file.flush()
        os.fsync(file.fileno())
