"""Connections: TLS against the system's certificates, the user's proxies, and errors in our own words."""

from __future__ import annotations

import contextlib
import os
import ssl
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests
import urllib3.exceptions
from requests.adapters import HTTPAdapter

from . import addresses, errors

CONNECTIONS = 32  # kept open to one host

_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")


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

    verified: certificates are checked; what is trusted is what OpenSSL reads from SSL_CERT_FILE and
    SSL_CERT_DIR, else the system's store, else certifi's list, and the bundles that requests, curl and
    pip are told about.
    """

    def __init__(self, *, verified: bool = True) -> None:
        self._verified = verified
        self._context = _verifying() if verified else _unverified()
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
        try:
            request = requests.Request(method, url, headers=headers).prepare()
            response = self.send(
                request,
                stream=True,
                timeout=timeout,
                verify=self._verified,
                proxies=_proxies(url),
            )
        except errors.FAILURES as error:
            raise errors.of_exception(url, error) from None
        answer = Answer()
        answer.__dict__.update(response.__dict__)
        return answer


def _proxies(url: str) -> dict[str, str]:
    """As the environment has them (NO_PROXY included); none of them reaches this machine's loopback."""
    if addresses.is_loopback(url):
        return {}
    return dict(requests.utils.get_environ_proxies(url))


def _verifying() -> ssl.SSLContext:
    import certifi
    import truststore

    context: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    named = [Path(os.environ[name]) for name in _BUNDLES if os.environ.get(name)]
    for bundle in named if named or _system_has_one() else [Path(certifi.where())]:
        _trust(context, bundle)
    return context


def _trust(context: ssl.SSLContext, bundle: Path) -> None:
    if bundle.is_dir():
        context.load_verify_locations(capath=bundle)
    elif bundle.is_file():
        # Where no certificates are in it, the handshake will say what is missing.
        with contextlib.suppress(ssl.SSLError):
            context.load_verify_locations(cafile=bundle)


def _system_has_one() -> bool:
    """Whether the system has certificates at all: a bare container may have none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    folder = ssl.get_default_verify_paths().capath
    return bool(context.cert_store_stats()["x509_ca"] or (folder and any(Path(folder).iterdir())))


def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
