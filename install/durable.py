"""Files that are whole or not there, also after the machine lost power."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from .. import json_text

T = TypeVar("T")

LARGEST = 64 << 20  # bytes that are read: ten times the list of 100,000 files

_FULL = {errno.ENOSPC, errno.EDQUOT}


def write(path: Path, data: bytes) -> None:
    """Replace a file in one step. Raises OSError, and then the old content stands."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)  # of a killed process that had this number
        with named(path), temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def dump(path: Path, value: object) -> None:
    """Write a struct as JSON that people can read. Raises OSError."""
    write(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def load(path: Path, kind: type[T]) -> T:
    """A JSON file of ours. Raises OSError as ``read``, and ValueError for what cannot be read as that."""
    return json_text.read(read(path), kind)


def read(path: Path) -> bytes:
    """A file of ours. Raises OSError, also for what is none, and for more than LARGEST bytes."""
    with os.fdopen(opened(path, os.O_RDONLY), "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OSError(errno.EFBIG, f"more than {LARGEST >> 20} MiB are in it", str(path))
    return data


def opened(path: Path, flags: int) -> int:
    """A descriptor of a regular file. Raises OSError for anything else: a link, a FIFO, which would block."""
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o644)
    except OSError as error:
        error.filename = str(path)
        if error.errno == errno.ELOOP:
            error.strerror = "this is a symbolic link, which is not followed"
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "this is not a regular file", str(path))
    return handle


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Let the OSErrors of this block name the file: those of writing and syncing name none."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def advice(error: OSError) -> str:
    """What to do about a file that could not be written; "" where the system's words say it."""
    if error.errno not in _FULL:
        return ""
    return "make room there; envcheck prune removes old versions and fetched files"


def sync_directory(directory: Path) -> None:
    """Make names in it last: a file's own fsync does not do that."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass  # some network file systems have no such thing; their directories are synchronous
    finally:
        os.close(handle)
