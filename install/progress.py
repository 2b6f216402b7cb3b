"""Amounts of bytes, and how far a download is, in words."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

_MIB = 1 << 20

_REPORT = 0.2  # seconds between two reports


class Meter:
    """Puts the progress of a download into words."""

    def __init__(self, shown: Callable[[str], None]) -> None:
        self._shown = shown
        self._first = self._reported = 0.0

    def __call__(self, done: int, total: int | None, files: str = "") -> None:
        """done: bytes fetched so far, of ``total``. files: those that are being fetched."""
        now = time.monotonic()
        self._first = self._first or now
        if now - self._reported >= _REPORT:
            self._reported = now
            self._shown(words(done, total, now - self._first) + (f"; {files}" if files else ""))


def size(count: float) -> str:
    """Bytes: "3.1 GiB", "412 MiB", "9.4 MiB", "87 KiB"."""
    if count >= 1024 * _MIB:
        return f"{count / 1024 / _MIB:.1f} GiB"
    if count >= _MIB:
        return f"{count / _MIB:.0f} MiB" if count >= 100 * _MIB else f"{count / _MIB:.1f} MiB"
    return f"{max(1, round(count / 1024)) if count else 0} KiB"


def words(done: int, total: int | None, seconds: float) -> str:
    """ "812 of 3128 MiB, 95.2 MiB/s, 24 s left"."""
    text = f"{done / _MIB:.0f}" + (f" of {total / _MIB:.0f}" if total else "") + " MiB"
    rate = done / seconds if seconds > 0 else 0.0
    if rate >= 1:
        text += f", {rate / _MIB:.1f} MiB/s"
        if total is not None and total > done:
            text += f", {duration((total - done) / rate)} left"
    return text


def duration(seconds: float) -> str:
    """ "24 s", "3 min 20 s", "125 min 0 s"."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
