"""Directories that killed runs worked in."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from .. import scratch

_MOMENT = 10.0  # seconds between the making of a directory and the lock on it, and more


def find() -> list[Path]:
    """This user's, which no living process holds a lock on. No envcheck may be installing."""
    found = sorted(Path(tempfile.gettempdir()).glob(f"{scratch.HELD}*"))
    return [path for path in found if _is_own(path) and not scratch.is_held(path)]


def _is_own(path: Path) -> bool:
    """Whether it is a directory of this user's that was not made this moment."""
    with suppress(OSError):
        state = path.lstat()
        old = time.time() - state.st_mtime > _MOMENT
        return old and path.is_dir() and not path.is_symlink() and state.st_uid == os.getuid()
    return False
