"""Ends a uv that reads the answers of indexes for ever, or into more memory than they can need.

uv itself has neither limit: a page of 1 GiB (1 MB of gzip) takes it 2.5 GiB, and a page that sends a byte now
and then never ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ...exit_codes import CouldNotLook
from .. import processes

MEMORY = 1 << 30  # bytes; resolving tensorflow[and-cuda] was seen to take 73 MiB
SILENCE = 240.0  # seconds in which it has to write LEAST bytes: what it reads goes to its cache
LEAST = 64 * 1024  # bytes: less is what its threads write to wake each other

_PAUSE = 0.05  # seconds between two looks
_STOPPED = 5.0  # seconds: after a longer pause, this process was stopped, and uv was, too


class Watch:
    """Called again and again with uv's process id. Raises CouldNotLook.

    whose: the indexes that it asks, for people.
    """

    def __init__(self, whose: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._whose = whose
        self._clock = clock
        self._last = self._since = clock()
        self._written = 0

    def __call__(self, pid: int) -> None:
        now = self._clock()
        if now - self._last < _PAUSE:
            return
        if now - self._last > _STOPPED:
            self._since += now - self._last
        self._last = now
        if processes.resident(pid) > MEMORY:
            raise CouldNotLook(
                f"what {self._whose} answers is too large: uv needs more than {MEMORY >> 20} MiB for it",
                "no package index sends that much: is it the right address?",
            )
        size = processes.written(pid)
        if size - self._written >= LEAST:
            self._written, self._since = size, now
        elif now - self._since > SILENCE:
            raise CouldNotLook(
                f"{self._whose} sent no complete page in {SILENCE:.0f} seconds",
                "try again, or use another address of it (--index): complete pages are kept",
            )
