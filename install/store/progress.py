"""How far the fetching is and how fast, in numbers and in words; what the next plan's seconds rest on."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from ...exit_codes import Cannot
from .. import places

_MEMORY = 5.0  # seconds that the rate is the mean of
_MIB = 1 << 20

# Bytes and seconds below which a rate says more about latency than about the line.
_ENOUGH_BYTES = 8 * _MIB
_ENOUGH_SECONDS = 0.5


class Fetching(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is; sizes in bytes."""

    files: int
    files_done: int
    total: int | None  # None: the size of some file is not known yet
    done: int  # there, whether fetched now or before
    fetched: int  # over the network, in this run


class SmoothedRate:
    """Bytes per second of the last seconds; None until there is something to go by."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque()

    @property
    def value(self) -> float | None:
        if not self._points:
            return None
        (first, before), (last, fetched) = self._points[0], self._points[-1]
        return (fetched - before) / (last - first) if last - first >= 0.1 else None

    def add(self, now: float, fetched: int) -> None:
        """now: seconds on a clock that never goes back. fetched: bytes since the beginning."""
        self._points.append((now, fetched))
        while now - self._points[0][0] > _MEMORY and len(self._points) > 2:
            self._points.popleft()


def words(state: Fetching, rate: float | None) -> str:
    """ "812 of 3128 MiB, 95.2 MiB/s, 24 s left"; rate: bytes per second."""
    done = f"{state.done / _MIB:.0f}"
    parts = [
        f"{done} of {state.total / _MIB:.0f} MiB" if state.total is not None else f"{done} MiB"
    ]
    if rate is not None:
        parts.append(f"{rate / _MIB:.1f} MiB/s")
        if rate >= 1 and state.total is not None and state.total > state.done:
            parts.append(f"{duration((state.total - state.done) / rate)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """ "24 s", "3 min 20 s", "125 min 0 s"."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


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
        """Remember the rate, for the next plan; where it cannot be written, its seconds are less exact."""
        seconds = self._last - self._first
        if self._fetched >= _ENOUGH_BYTES and seconds >= _ENOUGH_SECONDS:
            with suppress(OSError):
                _record().parent.mkdir(parents=True, exist_ok=True)
                _record().write_bytes(msgspec.json.encode(_LastRate(self._fetched / seconds)))


class _LastRate(msgspec.Struct):
    bytes_per_second: float


def last_rate() -> float:
    """Bytes per second of the last installation; 0 where none has fetched enough to tell."""
    try:
        rate = msgspec.json.decode(_record().read_bytes(), type=_LastRate).bytes_per_second
    except (OSError, Cannot, msgspec.DecodeError):
        return 0.0
    return max(rate, 0.0)


def _record() -> Path:
    return places.state() / "fetch-rate.json"
