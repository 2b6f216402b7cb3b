"""Connections: TLS against the system's certificates, the user's proxies, and errors in our own words."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests
import urllib3.exceptions
from requests.adapters import HTTPAdapter

from . import addresses, errors, trust
from .host_certificates import HostCertificates
from .pip_settings import pip_settings

CONNECTIONS = 32  # kept open to one host


class Answer(requests.Response):
    """A response whose body breaks off with an HttpError, and is read up to ``limit`` bytes."""

    limit: int | None = None

    def iter_content(
        self, chunk_size: int | None = 1, decode_unicode: Any = False
    ) -> Iterator[Any]:
        came = 0
        try:
            for piece in super().iter_content(chunk_size, decode_unicode=decode_unicode):
                came += len(piece)
                if self.limit is not None and came > self.limit:
                    self.close()
                    raise errors.too_large(self.url, self.limit)
                yield piece
        except errors.FAILURES as error:
            raise errors.of_exception(self.url, error) from None


class Transport(HTTPAdapter):
    """Sends one request, and follows and repeats nothing.

    verified: certificates are checked, against what ``trust.verifying`` trusts, and pip's ``cert``. pip's
    ``proxy`` goes before the environment's proxies, as it does for pip.
    """

    def __init__(self, *, verified: bool = True, own: HostCertificates | None = None) -> None:
        """own: certificates for one host alone."""
        self._verified = verified
        self._context = trust.verifying() if verified else trust.unverified()
        self._proxy, certificates = _settings_of_pip()
        if verified and certificates:
            # Where no certificates are in it, the handshake will say what is missing.
            with contextlib.suppress(OSError):
                self._context.load_verify_locations(certificates)
        if own is not None:
            own.load(self._context)
        if not verified:  # asked for by name; the user need not be told at every request
            warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
        super().__init__(pool_maxsize=CONNECTIONS)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options, ssl_context=self._context)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        if not proxy.lower().startswith("socks"):
            options["proxy_ssl_context"] = self._context
        return super().proxy_manager_for(proxy, **options, ssl_context=self._context)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """The context knows what to trust; requests would add its own list to it."""
        conn.cert_reqs = "CERT_REQUIRED" if self._verified else "CERT_NONE"

    def answer(
        self, method: str, url: str, headers: dict[str, str], timeout: tuple[float, float]
    ) -> Answer:
        """url: without credentials. timeout: seconds to connect, and without a byte. Raises HttpError."""
        proxies = _proxies(url, self._proxy)
        if not all(map(addresses.is_whole, proxies.values())):
            raise errors.broken_proxy(url)
        try:
            request = requests.Request(method, url, headers=headers).prepare()
            response = self.send(
                request,
                stream=True,
                timeout=timeout,
                verify=self._verified,
                proxies=proxies,
            )
        except errors.FAILURES as error:
            raise errors.of_exception(url, error) from None
        answer = Answer()
        answer.__dict__.update(response.__dict__)
        return answer


def _proxies(url: str, of_pip: str) -> dict[str, str]:
    """pip's, else as the environment has them; NO_PROXY counts, and this machine's loopback needs none."""
    if addresses.is_loopback(url):
        return {}
    if of_pip and not requests.utils.should_bypass_proxies(url, no_proxy=None):
        return {"http": of_pip, "https": of_pip}
    return dict(requests.utils.get_environ_proxies(url))


def _settings_of_pip() -> tuple[str, str]:
    """pip's ``proxy``, and the file of its ``cert``; "" where it has none."""
    settings = pip_settings(os.environ)
    proxy, cert = settings.get("proxy"), settings.get("cert")
    named = cert.value if cert is not None and Path(cert.value).is_file() else ""
    return (proxy.value if proxy is not None else "", named)
