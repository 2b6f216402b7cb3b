"""Ctrl-C that waits."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C in this block counts at its end.

    For imports: msgspec's compiled part, interrupted while it is imported, swallows the interrupt and
    makes the process die of a segmentation fault later, when it reads its first Snapshot.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
