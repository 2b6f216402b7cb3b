"""Connections: TLS against the system's certificates, the user's proxies, and an end to whatever trickles."""

from __future__ import annotations

import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import requests
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection

from . import addresses, errors
from .errors import HttpError

LARGEST = 16 << 30  # bytes of a file without a known size
PAGE_SECONDS = 60.0  # for all of a page

_PIECE = 256 * 1024  # bytes read at once
_PIECE_SECONDS = 60.0  # for one: a connection that trickles counts as cut


@contextmanager
def _ending(seconds: float, shut: Callable[[], object]) -> Iterator[None]:
    """Shuts a connection when the time is over: a byte now and then defeats all other timeouts."""
    late = threading.Event()

    def end() -> None:
        late.set()
        with suppress(AttributeError, OSError, RuntimeError, ValueError):
            shut()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except errors.FAILURES:
        if late.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()
    if late.is_set():  # a body without a length ends where the connection does
        raise TimeoutError


class _Watched:
    """The head of an answer is there within twice the silence that is allowed."""

    sock: Any
    timeout: float

    def getresponse(self) -> Any:
        sock = self.sock
        with _ending(2 * self.timeout, lambda: sock.shutdown(socket.SHUT_RDWR)):
            return super().getresponse()  # type: ignore[misc]


class _Connection(_Watched, HTTPConnection):  # type: ignore[misc]
    pass


class _SecureConnection(_Watched, HTTPSConnection):  # type: ignore[misc]
    pass


class Transport(HTTPAdapter):
    """Sends one request, and follows and repeats nothing.

    proxy: goes before the environment's, as pip's setting does for pip.
    """

    def __init__(self, context: ssl.SSLContext, proxy: str = "") -> None:
        self._context = context
        self._proxy = proxy
        self._verified = context.verify_mode == ssl.CERT_REQUIRED
        if not self._verified:  # asked for by name; no warning at every request
            warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
        super().__init__(pool_maxsize=32)

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
        """NO_PROXY counts, and this machine's loopback needs none."""
        if addresses.is_loopback(url):
            return {}
        if self._proxy and not requests.utils.should_bypass_proxies(url, no_proxy=None):
            return {"http": self._proxy, "https": self._proxy}
        return dict(requests.utils.get_environ_proxies(url))


def pieces(answer: requests.Response) -> Iterator[bytes]:
    """A file's body as it comes. Raises HttpError where it breaks off, trickles, or does not end."""
    size = 0
    while data := _read(answer, _PIECE, _PIECE_SECONDS):
        size += len(data)
        if size > LARGEST:
            raise HttpError(f"{addresses.shown(answer.url)} sends more than {LARGEST >> 30} GiB")
        yield data


def read(answer: requests.Response, limit: int) -> None:
    """All of a page, at most so many bytes, which its ``content`` then is. Raises HttpError."""
    answer._content = _read(answer, limit + 1, PAGE_SECONDS, decode_content=True)
    answer.close()
    if len(answer.content) > limit:
        raise HttpError(f"{addresses.shown(answer.url)} sends a page larger than {limit >> 20} MiB")


def _read(
    answer: requests.Response, size: int, seconds: float, *, decode_content: bool = False
) -> bytes:
    try:
        with _ending(seconds, lambda: answer.raw.shutdown()):
            data: bytes = answer.raw.read(size, decode_content=decode_content)
            return data
    except errors.FAILURES as error:
        raise errors.of_exception(answer.url, error) from None
