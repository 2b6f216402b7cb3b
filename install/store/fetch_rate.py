"""How fast the last installation fetched: what the next plan's seconds rest on."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...exit_codes import Cannot
from .. import places

if TYPE_CHECKING:
    from .progress import Fetching

# Bytes and seconds below which a rate says more about latency than about the line.
_ENOUGH_BYTES = 8 * 1024 * 1024
_ENOUGH_SECONDS = 0.5


class _LastRate(msgspec.Struct, frozen=True):
    bytes_per_second: float


def _record() -> Path:
    return places.state() / "fetch-rate.json"


def read() -> float:
    """Bytes per second; 0 where no installation has fetched enough to tell."""
    try:
        rate = msgspec.json.decode(_record().read_bytes(), type=_LastRate).bytes_per_second
    except (OSError, Cannot, msgspec.DecodeError):
        return 0.0
    return rate if rate > 0 else 0.0


class Meter:
    """Stands between a Fetcher and whoever shows its progress, and takes the time."""

    def __init__(self, shown: Callable[[Fetching], None]) -> None:
        self._shown = shown
        self._first = self._last = 0.0
        self._fetched = 0

    def __call__(self, state: Fetching) -> None:
        now = time.monotonic()
        if state.fetched > self._fetched:
            self._first = self._first or now
            self._last, self._fetched = now, state.fetched
        if state.files:
            self._shown(state)

    def keep(self) -> None:
        """Remember the rate, for the next plan."""
        keep(self._fetched, self._last - self._first)


def keep(fetched_bytes: int, seconds: float) -> None:
    """Remember it; a state directory that cannot be written to costs the next plan's accuracy alone."""
    if fetched_bytes < _ENOUGH_BYTES or seconds < _ENOUGH_SECONDS:
        return
    with suppress(OSError):
        _record().parent.mkdir(parents=True, exist_ok=True)
        _record().write_bytes(msgspec.json.encode(_LastRate(fetched_bytes / seconds)))
