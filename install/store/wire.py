"""What all downloads share: the session, the count of bytes, and the way to end them at once."""

from __future__ import annotations

import threading
from contextlib import suppress

import requests
from urllib3.util import Retry

from ..network.retries import retry_policy
from ..network.session import SILENCE, Session

RETRIES = retry_policy(attempts=8, slow=8)  # about a minute in all: a router may restart


class Stopped(Exception):
    """The fetching was ended from outside."""


class Wire:
    """The network's side of a Fetcher."""

    def __init__(
        self,
        session: Session,
        *,
        silence: float = SILENCE,
        retries: Retry = RETRIES,
    ) -> None:
        """silence: seconds without a byte that count as a cut."""
        self.session = session
        self.silence = silence
        self.retries = retries
        self.stop = threading.Event()
        self.fetched = 0  # bytes of bodies that came over the network
        self._lock = threading.Lock()
        self._open: set[requests.Response] = set()

    def count(self, size: int) -> None:
        with self._lock:
            self.fetched += size

    def end(self) -> None:
        """Wake whoever waits for the network."""
        self.stop.set()
        with self._lock:
            responses = list(self._open)
        for response in responses:
            # Closing a connection does not wake a thread that reads from it; urllib3's shutdown does.
            with suppress(AttributeError, OSError, RuntimeError, ValueError):
                response.raw.shutdown()

    def listen(self, response: requests.Response) -> None:
        with self._lock:
            self._open.add(response)

    def forget(self, response: requests.Response) -> None:
        with self._lock:
            self._open.discard(response)
        response.close()
