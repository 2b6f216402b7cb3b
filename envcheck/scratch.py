"""Directories to work in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def directory() -> Iterator[Path]:
    """A new, empty one that only its owner may look into. Raises OSError."""
    with TemporaryDirectory(prefix="envcheck-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
