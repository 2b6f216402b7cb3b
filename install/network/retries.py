"""How often and after what pause a request is made again. urllib3's Retry counts, and says how long to wait.

Its own loop is not used: it would sleep through the end of the session, read the rest of an error page
however long that is, and know nothing of a body that is cut.
"""

from __future__ import annotations

import threading

from urllib3.exceptions import ConnectTimeoutError, HTTPError
from urllib3.util import Retry

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


class Attempts:
    """Counts the failures of one request in a row."""

    def __init__(self, retries: Retry, stop: threading.Event) -> None:
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
        if self._stop.wait(max(self._left.get_backoff_time(), error.wait)):
            raise error
