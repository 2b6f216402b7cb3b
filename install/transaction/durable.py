"""Files that are whole or not there, also after the machine lost power."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = {errno.ENOSPC, errno.EDQUOT}


def write(path: Path, data: bytes) -> None:
    """Replace a file in one step. Raises OSError, and then the old content stands."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with named(path), temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


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
