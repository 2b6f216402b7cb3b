"""Connections: TLS against the system's certificates, the user's proxies, and an end to whatever trickles."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import requests
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from . import addresses, errors, trust
from .pip_settings import pip_settings

CONNECTIONS = 32  # kept open to one host
SLOWEST = (
    60.0  # seconds for a piece of a body, some 100 KiB: a connection that trickles counts as cut
)
LARGEST = 16 << 30  # bytes of a body whose size nobody said


class Watchdog:
    """Shuts a connection when the time is over: a byte now and then defeats all other timeouts.

    A context manager. late: it did.
    """

    def __init__(self, seconds: float, shut: Callable[[], object]) -> None:
        self.late = False
        self._seconds = seconds
        self._shut_connection = shut
        self._timer: threading.Timer | None = None
        self._started = 0.0

    def __enter__(self) -> Watchdog:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def start(self) -> None:
        """Begin to count, or begin again."""
        self.__exit__()
        self._started = time.monotonic()
        self._timer = threading.Timer(self._seconds, self.shut)
        self._timer.daemon = True
        self._timer.start()

    def renew(self) -> None:
        """Begin again, for something came; costs nothing where that was just done."""
        if time.monotonic() - self._started > self._seconds / 10:
            self.start()

    def shut(self) -> None:
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


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection  # type: ignore[assignment]


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection  # type: ignore[assignment]


class Answer(requests.Response):
    """A response whose body breaks off with an HttpError.

    limit: bytes of the body that are read. seconds: in which it has to be there; None: each piece of it
    has to be there within SLOWEST.
    """

    limit: int = LARGEST
    seconds: float | None = None

    def iter_content(
        self, chunk_size: int | None = 1, decode_unicode: Any = False
    ) -> Iterator[Any]:
        came = 0
        with self.watchdog(self.seconds or SLOWEST) as watchdog, self.explained(watchdog):
            for piece in super().iter_content(chunk_size, decode_unicode=decode_unicode):
                came += len(piece)
                if came > self.limit:
                    self.close()
                    raise errors.too_large(self.url, self.limit)
                if self.seconds is None:
                    watchdog.renew()
                yield piece

    def watchdog(self, seconds: float) -> Watchdog:
        """Ends the body after some seconds."""
        return Watchdog(seconds, lambda: self.raw.shutdown())

    @contextmanager
    def explained(self, watchdog: Watchdog) -> Iterator[None]:
        """What breaks off while it is read is an HttpError."""
        try:
            yield
        except errors.FAILURES as error:
            cause = TimeoutError() if watchdog.late else error
            raise errors.of_exception(self.url, cause) from None
        if watchdog.late:  # a body without a length ends where the connection does
            raise errors.of_exception(self.url, TimeoutError())


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
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        if not proxy.lower().startswith("socks"):
            options["proxy_ssl_context"] = self._context
        manager = super().proxy_manager_for(proxy, **options, ssl_context=self._context)
        if not proxy.lower().startswith("socks"):
            manager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
        return manager

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """The context knows what to trust; requests would add its own list to it."""
        conn.cert_reqs = "CERT_REQUIRED" if self._verified else "CERT_NONE"

    def answer(
        self, method: str, url: str, headers: dict[str, str], timeout: tuple[float, float]
    ) -> Answer:
        """url: without credentials. timeout: seconds to connect, and without a byte. Raises HttpError."""
        proxies = self._proxies(url)
        if not all(map(addresses.is_whole, proxies.values())):
            raise errors.broken_proxy(url)
        try:
            request = requests.Request(method, url, headers=headers).prepare()
            response = self.send(
                request, stream=True, timeout=timeout, verify=self._verified, proxies=proxies
            )
        except errors.FAILURES as error:
            raise errors.of_exception(url, error) from None
        answer = Answer()
        answer.__dict__.update(response.__dict__)
        return answer

    def _proxies(self, url: str) -> dict[str, str]:
        """pip's, else the environment's; NO_PROXY counts, and this machine's loopback needs none."""
        if addresses.is_loopback(url):
            return {}
        if self._proxy and not requests.utils.should_bypass_proxies(url, no_proxy=None):
            return {"http": self._proxy, "https": self._proxy}
        return dict(requests.utils.get_environ_proxies(url))
