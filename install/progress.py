"""How far a download is, in words; and the rate that the next plan's seconds rest on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from .. import json_text
from ..exit_codes import Cannot
from . import durable, places

_MIB = 1 << 20

# Bytes and seconds below which a rate says more about latency than about the line.
_ENOUGH_BYTES = 8 * _MIB
_ENOUGH_SECONDS = 0.5
_REPORT = 0.2  # seconds between two reports


class Meter:
    """Puts the progress of a download into words, and remembers its rate. Safe for threads."""

    def __init__(self, shown: Callable[[str], None]) -> None:
        self._shown = shown
        self._first = self._last = self._reported = 0.0
        self._done = 0

    def __call__(self, done: int, total: int | None, files: str = "") -> None:
        """done: bytes fetched so far, of ``total``. files: those that are being fetched."""
        now = time.monotonic()
        self._first = self._first or now
        if done > self._done:
            self._last, self._done = now, done
        if now - self._reported >= _REPORT:
            self._reported = now
            self._shown(words(done, total, now - self._first) + (f"; {files}" if files else ""))

    def keep(self) -> None:
        """Remember the rate for the next plan; if it cannot be written, its seconds are less exact."""
        seconds = self._last - self._first
        if self._done >= _ENOUGH_BYTES and seconds >= _ENOUGH_SECONDS:
            with suppress(OSError):
                _record().parent.mkdir(parents=True, exist_ok=True)
                durable.write(_record(), msgspec.json.encode(_LastRate(self._done / seconds)))


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


class _LastRate(msgspec.Struct):
    bytes_per_second: float


def last_rate() -> float:
    """Bytes per second of the last installation; 0 if none has fetched enough to tell."""
    try:
        rate = json_text.read(durable.read(_record()), _LastRate).bytes_per_second
    except (OSError, Cannot, json_text.NotReadable):
        return 0.0
    return max(rate, 0.0)


def _record() -> Path:
    return places.state() / "fetch-rate.json"
