"""How often and after what pause a request is made again. urllib3's Retry counts, and says how long to wait.

Its own loop is not used: it would sleep through the end of the session, read the rest of an error page
however long that is, and know nothing of a body that is cut.
"""

from __future__ import annotations

import threading
import time

from urllib3.exceptions import ConnectTimeoutError, HTTPError
from urllib3.util import Retry

from . import addresses
from .errors import HttpError

PATIENCE = 120.0  # seconds of a Retry-After that are waited for


def retry_policy(
    attempts: int = 5, slow: int = 3, first: float = 1.0, longest: float = 20.0
) -> Retry:
    """attempts: in a row without progress. slow: the same where each takes long (see HttpError).

    The first retry comes at once; then pauses double from ``first`` to ``longest`` (seconds).
    """
    return Retry(
        total=attempts - 1,
        connect=slow - 1,
        backoff_factor=first / 2,
        backoff_max=longest,
        backoff_jitter=first / 2,
    )


class Deadline:
    """The end of a request, its redirects and all of its attempts; without seconds there is none."""

    def __init__(self, url: str, seconds: float | None = None) -> None:
        self._url = url
        self._seconds = seconds
        self._ends = None if seconds is None else time.monotonic() + seconds

    def least(self, seconds: float) -> float:
        """So many seconds, or what is left of the deadline. Raises HttpError where nothing is."""
        if self._ends is None or self._seconds is None:
            return seconds
        left = self._ends - time.monotonic()
        if left <= 0:
            raise HttpError(
                f"{addresses.host(self._url)} has not sent all of {addresses.shown(self._url)} within"
                f" {self._seconds:.0f} seconds",
                "try again later: the server, or the network on the way to it, is too slow",
            )
        return min(seconds, left)


class Attempts:
    """Counts the failures of one request in a row."""

    def __init__(self, retries: Retry, stop: threading.Event, ends: Deadline | None = None) -> None:
        self._ends = ends or Deadline("")
        self._retries = self._left = retries
        self._stop = stop

    def failed(self, error: HttpError, *, progress: bool = False) -> None:
        """Wait until the next attempt is due; raises the error where there is none.

        progress: something was gained since the failure before, which so does not count.
        """
        if not error.again or error.wait > PATIENCE:
            raise error
        left = self._retries if progress else self._left
        try:
            self._left = left.increment("GET", error=ConnectTimeoutError() if error.slow else None)
        except HTTPError:
            raise error from None
        pause = max(self._left.get_backoff_time(), error.wait)
        if self._ends.least(pause) < pause or self._stop.wait(pause):
            raise error
