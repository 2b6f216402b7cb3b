"""How far the fetching is, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from .transfer import Transfer

_MEMORY = 5.0  # seconds: what the rate is smoothed over
_MIB = 1 << 20


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


class SmoothedRate:
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
    """ "24 s", "3 min 20 s", "2 h 5 min"; "days" beyond that."""
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return "days"
