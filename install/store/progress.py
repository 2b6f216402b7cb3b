"""How far the fetching is: one line that is rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import TextIO

import msgspec

from ...reports.progress import Progress as Line
from .transfer import Transfer

_EVERY = 10.0  # seconds between two lines where the stream is no terminal
_MEMORY = 5.0  # seconds: what the rate is smoothed over
_MIB = 1 << 20
_ERASE = "\r\x1b[K"


class Fetching(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is; sizes in bytes."""

    files: int
    files_done: int
    total: int | None  # None: the size of some file is not known yet
    done: int  # there, whether fetched now or before
    fetched: int  # over the network, in this run


def fetching(transfers: Sequence[Transfer], fetched: int) -> Fetching:
    """The sum over all transfers."""
    known = [transfer.total for transfer in transfers if transfer.total is not None]
    return Fetching(
        files=len(transfers),
        files_done=sum(transfer.complete for transfer in transfers),
        total=sum(known) if len(known) == len(transfers) else None,
        done=sum(transfer.size for transfer in transfers),
        fetched=fetched,
    )


class Rate:
    """Bytes per second, smoothed; None until there is something to go by."""

    def __init__(self) -> None:
        self.value: float | None = None
        self._last: tuple[float, int] | None = None
        self._sum = self._weights = 0.0

    def add(self, now: float, fetched: int) -> None:
        """now: seconds on a clock that never goes back. fetched: bytes since the beginning."""
        if self._last is None:
            self._last = now, fetched
        elif (seconds := now - self._last[0]) >= 0.1:
            current = (fetched - self._last[1]) / seconds
            weight = 1.0 - math.exp(-seconds / _MEMORY)
            self._sum = current * weight + self._sum * (1.0 - weight)
            self._weights = weight + self._weights * (1.0 - weight)
            # By the weights so far, so that a slow first tenth of a second does not count for ever.
            self.value = self._sum / self._weights
            self._last = now, fetched


class Progress(Line):
    """Shows what a Fetcher reports: give it as ``on_progress``. A context manager.

    On a terminal one line is rewritten, and taken away at the end; elsewhere comes a line every ten
    seconds at most. Safe for threads.
    """

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._rate = Rate()
        self._told = clock()
        self._lock = threading.Lock()

    def __call__(self, state: Fetching) -> None:
        with self._lock:
            now = self._clock()
            self._rate.add(now, state.fetched)
            text = f"envcheck: fetching: {words(state, self._rate.value)}"
            if self._live:
                text = text[: self._columns() - 1]
                if text != self._shown:
                    self._write(_ERASE + text)
                    self._shown = text
            elif now - self._told >= _EVERY and state.files_done < state.files:
                self._told = now
                self._write(text + "\n")

    def clear(self) -> None:
        """Take the line away, so that something else can be written; the next report brings it back."""
        with self._lock:
            super().clear()


def words(state: Fetching, rate: float | None) -> str:
    """ "3 of 43 files, 812 of 3128 MiB, 95.2 MiB/s, 24 s left"; rate: bytes per second."""
    done = f"{state.done / _MIB:.0f}"
    size = f"{done} of {state.total / _MIB:.0f} MiB" if state.total is not None else f"{done} MiB"
    parts = [f"{state.files_done} of {state.files} files", size]
    if rate is not None:
        parts.append(f"{rate / _MIB:.1f} MiB/s")
        if rate >= 1 and state.total is not None and state.total > state.done:
            parts.append(f"{duration((state.total - state.done) / rate)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """ "24 s", "3 min 20 s", "2 h 5 min"; "days" beyond that."""
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return "days"
