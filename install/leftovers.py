"""What killed runs left behind, and older releases: directories to work in, half-written files."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .. import scratch
from . import places

_DAY = 86400.0  # seconds: an older release's directory, which nobody holds a lock on, may be in use before
_MOMENT = 10.0  # seconds between the making of a directory and the lock on it, and more
_RECORD = re.compile(r"\.[a-z-]+\.json\.([0-9]{1,9})")  # as `durable.write` names them


def find() -> list[Path]:
    """Files and directories of this user that no envcheck needs any more. No envcheck may be installing."""
    return [path for path in (*_scratch(), *_half_written(places.state())) if _is_own(path)]


def size(path: Path) -> int:
    """Bytes of a file, or of all files below a directory; links are not followed."""
    inside = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    total = 0
    for file in [path] if not _is_directory(path) else inside:
        with suppress(OSError):
            total += file.lstat().st_size
    return total


def remove(path: Path) -> int:
    """Remove one: bytes that were in it. What cannot be removed stays."""
    before = size(path)
    if _is_directory(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
    return before - size(path)


def _scratch() -> Iterator[Path]:
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{scratch.PREFIX}*")):
        least = _MOMENT if path.name.startswith(scratch.HELD) else _DAY
        if _is_directory(path) and _age(path) > least and not scratch.is_held(path):
            yield path


def _half_written(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.glob(".*.json.*")):
        found = _RECORD.fullmatch(path.name)
        if found and (_age(path) > _DAY or not _is_running(int(found[1]))):
            yield path


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_own(path: Path) -> bool:
    with suppress(OSError):
        return path.lstat().st_uid == os.getuid()
    return False


def _is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _age(path: Path) -> float:
    """Seconds since it was written to; none for what is not there."""
    with suppress(OSError):
        return time.time() - path.lstat().st_mtime
    return 0.0
