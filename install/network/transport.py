"""Connections: TLS against the system's certificates, the user's proxies, and an end to whatever trickles."""

from __future__ import annotations

import os
import re
import socket
import ssl
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import requests
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection

from . import addresses, errors, trust
from .errors import HttpError
from .pip_settings import pip_settings
from .retries import Deadline

CONNECTIONS = 32  # kept open to one host
LARGEST = 16 << 30  # bytes of a file whose size nobody said

_PIECE = 64 * 1024  # bytes read at once
_SLOWEST = 60.0  # seconds for a piece: a connection that trickles counts as cut
_PAGE_SECONDS = 120.0  # for all of a page


class Watchdog:
    """Shuts a connection when the time is over: a byte now and then defeats all other timeouts.

    A context manager. late: it did.
    """

    def __init__(self, seconds: float, shut: Callable[[], object]) -> None:
        self.late = False
        self._seconds = seconds
        self._shut_connection = shut

    def __enter__(self) -> Watchdog:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def renew(self) -> None:
        """Begin to count again, for something came; costs nothing where that was just done."""
        if time.monotonic() - self._started > self._seconds / 10:
            self._timer.cancel()
            self._start()

    def _start(self) -> None:
        self._started = time.monotonic()
        self._timer = threading.Timer(self._seconds, self._shut)
        self._timer.daemon = True
        self._timer.start()

    def _shut(self) -> None:
        self.late = True
        with suppress(AttributeError, OSError, RuntimeError, ValueError):
            self._shut_connection()


class _Watched:
    """The head of an answer is there within twice the silence that is allowed."""

    sock: Any
    timeout: float

    def getresponse(self) -> Any:
        sock = self.sock
        with Watchdog(2 * self.timeout, lambda: sock.shutdown(socket.SHUT_RDWR)) as watchdog:
            try:
                return super().getresponse()  # type: ignore[misc]
            finally:
                if watchdog.late:
                    raise TimeoutError


class _Connection(_Watched, HTTPConnection):  # type: ignore[misc]
    pass


class _SecureConnection(_Watched, HTTPSConnection):  # type: ignore[misc]
    pass


class Transport(HTTPAdapter):
    """Sends one request, and follows and repeats nothing.

    verified: certificates are checked, against what ``trust.verifying`` trusts, and pip's ``cert``. pip's
    ``proxy`` goes before the environment's proxies, as it does for pip.
    """

    def __init__(
        self, *, verified: bool = True, prepare: Callable[[ssl.SSLContext], None] | None = None
    ) -> None:
        """prepare: adds certificates that are for one host alone."""
        self._verified = verified
        self._context = trust.verifying() if verified else trust.unverified()
        settings = pip_settings(os.environ)
        self._proxy = settings["proxy"].value if "proxy" in settings else ""
        if verified and "cert" in settings and Path(settings["cert"].value).is_file():
            trust.load(self._context, settings["cert"].value)
        if prepare is not None:
            prepare(self._context)
        if not verified:  # asked for by name; the user need not be told at every request
            warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
        super().__init__(pool_maxsize=CONNECTIONS)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options, ssl_context=self._context)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        if not proxy.lower().startswith("socks"):
            options["proxy_ssl_context"] = self._context
        return super().proxy_manager_for(proxy, **options, ssl_context=self._context)

    def get_connection_with_tls_context(self, *arguments: Any, **options: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*arguments, **options)
        pool.ConnectionCls = _SecureConnection if pool.scheme == "https" else _Connection
        return pool

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """The context knows what to trust; requests would add its own list to it."""
        conn.cert_reqs = "CERT_REQUIRED" if self._verified else "CERT_NONE"

    def answer(
        self, method: str, url: str, headers: dict[str, str], timeout: tuple[float, float]
    ) -> requests.Response:
        """url: without credentials. timeout: seconds to connect, and without a byte. Raises HttpError."""
        try:
            proxies = self._proxies(url)
            if not all(map(addresses.is_whole, proxies.values())):
                raise requests.exceptions.InvalidProxyURL
            request = requests.Request(method, url, headers=headers).prepare()
            return self.send(
                request, stream=True, timeout=timeout, verify=self._verified, proxies=proxies
            )
        except errors.FAILURES as error:
            raise errors.of_exception(url, error) from None

    def _proxies(self, url: str) -> dict[str, str]:
        """pip's, else the environment's; NO_PROXY counts, and this machine's loopback needs none."""
        if addresses.is_loopback(url):
            return {}
        if self._proxy and not requests.utils.should_bypass_proxies(url, no_proxy=None):
            return {"http": self._proxy, "https": self._proxy}
        return dict(requests.utils.get_environ_proxies(url))


def content_length(headers: Mapping[str, str]) -> int | None:
    """Bytes, by the Content-Length header; None where it is not there or no length."""
    said = headers.get("Content-Length", "")
    return int(said) if re.fullmatch("[0-9]{1,18}", said) else None


def pieces(answer: requests.Response) -> Iterator[bytes]:
    """A file's body as it comes. Raises HttpError where it breaks off, trickles, or does not end."""
    left = LARGEST
    with _watched(answer, _SLOWEST) as watchdog:
        while data := answer.raw.read(_PIECE, decode_content=False):
            left -= len(data)
            if left < 0:
                raise HttpError(
                    f"{addresses.shown(answer.url)} sends more than {LARGEST >> 30} GiB"
                )
            yield data
            watchdog.renew()


def read(answer: requests.Response, limit: int, ends: Deadline) -> None:
    """All of a page, at most so many bytes, which its ``content`` then is. Raises HttpError."""
    with _watched(answer, ends.least(_PAGE_SECONDS)):
        answer._content = answer.raw.read(limit + 1, decode_content=True)
    answer.close()
    if len(answer.content) > limit:
        raise HttpError(f"{addresses.shown(answer.url)} sends a page larger than {limit >> 20} MiB")


@contextmanager
def _watched(answer: requests.Response, seconds: float) -> Iterator[Watchdog]:
    """What breaks off while it is read, or is not there after these seconds, is an HttpError."""
    with Watchdog(seconds, lambda: answer.raw.shutdown()) as watchdog:
        try:
            yield watchdog
        except errors.FAILURES as error:
            cause = TimeoutError() if watchdog.late else error
            raise errors.of_exception(answer.url, cause) from None
        if watchdog.late:  # a body without a length ends where the connection does
            raise errors.of_exception(answer.url, TimeoutError())
