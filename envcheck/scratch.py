"""Directories to work in: a lock on them tells `envcheck prune` which of them belong to the living."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

PREFIX = "envcheck-"
HELD = "envcheck-held-"  # the collector's are called so too: its process holds a lock on them


@contextmanager
def directory() -> Iterator[Path]:
    """A new, empty one that only its owner may look into. Raises OSError."""
    with TemporaryDirectory(prefix=HELD, ignore_cleanup_errors=True) as folder:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield Path(folder)
        finally:
            os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether a living process holds a lock on it, or that cannot be found out."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
