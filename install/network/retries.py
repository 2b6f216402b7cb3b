"""How often and after what pause a request is made again."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from datetime import timezone
from email.utils import parsedate_to_datetime

import msgspec

from .errors import HttpError

PATIENCE = 120.0  # seconds that a server may ask to be left alone for


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """Pauses double from ``first`` to ``longest`` (seconds), and vary so that clients spread out.

    attempts: in a row without progress. connecting: the same while not even a connection comes about, or
    where the other side says nothing for the whole time that it is given.
    """

    attempts: int = 5
    connecting: int = 3
    first: float = 0.5
    longest: float = 20.0

    def pause(self, failures: int, chance: float) -> float:
        """Seconds after so many failures in a row; chance: from 0 to 1."""
        doubled: float = min(self.longest, self.first * 2.0 ** min(failures - 1, 30))
        return doubled * (0.5 + chance / 2)


class Attempts:
    """Counts the failures of one request in a row."""

    def __init__(self, retries: Retries, stop: threading.Event) -> None:
        self._retries = retries
        self._stop = stop
        self._failures = 0

    def failed(self, error: HttpError, *, progress: bool = False) -> None:
        """Wait until the next attempt is due; raises the error where there is none.

        progress: something was gained since the failure before, which so does not count.
        """
        self._failures = 1 if progress else self._failures + 1
        slow = error.connecting or error.silent
        most = self._retries.connecting if slow else self._retries.attempts
        if not error.again or self._failures >= most or (error.wait or 0) > PATIENCE:
            raise error
        pause = self._retries.pause(self._failures, random.random())
        if self._stop.wait(max(pause, error.wait or 0.0)):
            raise error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds by the Retry-After header, a number or a date (RFC 9110); None: it is not there or broken."""
    said = headers.get("Retry-After", "").strip()
    if said.isdigit():
        return float(said)
    try:
        at = parsedate_to_datetime(said)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)
    return max(0.0, at.timestamp() - time.time())
