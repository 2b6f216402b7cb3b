"""One session with the indexes: every request that envcheck makes over HTTP goes through it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Collection
from types import TracebackType
from urllib.parse import urlsplit

import requests
from urllib3.util import Retry

from ... import __version__
from . import addresses, answers
from .access import Access
from .credentials import Credentials
from .errors import HttpError
from .retries import Attempts, retry_policy
from .transport import Answer, Transport

CONNECT = 10.0  # seconds until a connection must have come about
SILENCE = 30.0  # seconds without a byte

Prepare = Callable[[ssl.SSLContext], None]
Scheme = Callable[[str], tuple[Access, str]]  # a URL -> who is let in, and the URL that answers

_REDIRECTS = {301, 302, 303, 307, 308}
_MOST_REDIRECTS = 10


class Session:
    """Verified, patient, and silent about credentials. Safe for threads.

    allow_insecure: host names that may be asked over plain http, or with a certificate that nobody
    vouches for.
    """

    def __init__(
        self,
        allow_insecure: Collection[str] = (),
        *,
        retries: Retry | None = None,
    ) -> None:
        self._insecure = {name.lower() for name in allow_insecure}
        self._retries = retries or retry_policy()
        self._credentials = Credentials()
        self._schemes: dict[str, Scheme] = {}
        self._transports: dict[tuple[bool, Prepare | None], Transport] = {}
        self._prepare: dict[tuple[str, str, int], Prepare] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends pauses between attempts at once, and lets go of the connections."""
        self._stop.set()
        for transport in self._transports.values():
            transport.close()

    def get(
        self,
        url: str,
        *,
        headers: dict[str, str] | None = None,
        timeout: float = SILENCE,
        attempts: int | None = None,
        file: bool = False,
        limit: int | None = None,
        access: Access | None = None,
    ) -> Answer:
        """The answer to a GET, with a status below 300 (or 304); its body is still to be read.

        Pages and bodies up to 1 MiB are read already, so that a cut in them costs another attempt and
        not an error. timeout: seconds without a byte. attempts: 1 leaves trying again to the caller.
        file: a file is asked for, its body is left on the connection, and a web page is an error.
        limit: bytes of a body that is read whole here. access: another than what is known of the URL.
        Raises HttpError.
        """
        tried = Attempts(self._patience(attempts), self._stop)
        while True:
            try:
                answer = self._followed("GET", url, headers or {}, timeout, file, access)
                return answer if file else answers.read(answer, limit)
            except HttpError as error:
                tried.failed(error)

    def head(
        self,
        url: str,
        *,
        headers: dict[str, str] | None = None,
        timeout: float = SILENCE,
        attempts: int | None = None,
    ) -> requests.Response:
        """The answer to a HEAD, with a status below 300. Raises HttpError."""
        tried = Attempts(self._patience(attempts), self._stop)
        while True:
            try:
                return self._followed("HEAD", url, headers or {}, timeout, False, None)
            except HttpError as error:
                tried.failed(error)

    def learn(self, url: str, index: str = "") -> None:
        """Use an index's credentials for all files on its host: its URL's, or, by the index's name,
        those in UV_INDEX_<NAME>_USERNAME and _PASSWORD. ``get`` learns what is in its URL by itself.
        Raises HttpError for what is no URL."""
        _origin(url)
        self._credentials.learn(url, index)

    def use_certificates(self, url: str, prepare: Prepare) -> None:
        """Certificates for one origin alone. prepare: loads them into its TLS context."""
        self._prepare[_origin(url)] = prepare

    def add_scheme(self, name: str, scheme: Scheme) -> None:
        """URLs that begin with NAME:// lead where ``scheme`` says, with its access."""
        self._schemes.setdefault(name, scheme)

    def allow_insecure(self, host: str) -> None:
        """Allow plain http and any certificate for one more host, by the user's own settings."""
        self._insecure.add(host.lower())

    def is_insecure(self, url: str) -> bool:
        """Whether the user allowed plain http and any certificate for its host."""
        return bool({addresses.host(url), _origin(url)[1]} & self._insecure)

    def permit(self, url: str) -> None:
        """Raises HttpError for an address that is none of https, this machine's, or allowed by name."""
        self._permit(url, url)

    def credentials(self, url: str) -> tuple[str, str] | None:
        """User name and password that are known for this URL's host, for a program that asks it, too."""
        return self._credentials.known(url)

    def public(self, url: str) -> str:
        """The URL without credentials."""
        return addresses.public(url)

    def _patience(self, attempts: int | None) -> Retry:
        return self._retries if attempts is None else self._retries.new(total=attempts - 1)

    def _followed(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        timeout: float,
        file: bool,
        access: Access | None,
    ) -> Answer:
        """One request and its redirects. What another host must not know stays behind."""
        if access is None:
            access, url = self._access(url)
        asked = url
        for _ in range(_MOST_REDIRECTS + 1):
            self._permit(url, asked)
            self._credentials.learn(url)
            answer = self._authorised(method, addresses.public(url), headers, timeout, access)
            location = answer.headers.get("Location", "")
            if answer.status_code not in _REDIRECTS or not location:
                return answers.checked(answer, file, access)
            answer.close()
            target = answers.target(url, location)
            if _origin(target) != _origin(url):
                headers = {k: v for k, v in headers.items() if k.lower() != "authorization"}
            url = target
        raise HttpError(f"{addresses.shown(asked)} redirects in a circle")

    def _access(self, url: str) -> tuple[Access, str]:
        """Who is to be let in, and where: a registry's URL becomes the one that answers."""
        scheme = self._schemes.get(url.partition("://")[0])
        if scheme is None:
            return self._credentials, url
        _origin(url)
        return scheme(url)

    def is_plain(self, host: str) -> bool:
        """Whether a registry is to be asked over plain http: it may be, and does not speak TLS."""
        if not (addresses.is_loopback(f"http://{host}/") or self.is_insecure(f"http://{host}/")):
            return False
        url = f"https://{host}/v2/"
        try:
            self._transport(url).answer(
                "GET", url, self._headers({}, ""), (CONNECT, CONNECT)
            ).close()
        except HttpError as error:
            return error.again  # and not for a certificate that is not to be trusted
        return False

    def _permit(self, url: str, asked: str) -> None:
        """Raises HttpError for a URL that is none of https, this machine, or allowed by its host's name."""
        scheme, host, _ = _origin(url)
        if not host or scheme not in ("http", "https"):
            raise HttpError(f"{addresses.shown(url)} is not a URL with https://")
        if scheme == "https" or self.is_insecure(url):
            return
        if urlsplit(asked).scheme == "https":
            raise HttpError(
                f"{addresses.host(asked)} redirects from https to http ({addresses.shown(url)}),"
                " and that is refused: a network that asks for a log-in does so, and an attacker",
                f"--allow-insecure {host} follows it anyway",
            )
        if not addresses.is_loopback(url):
            what = addresses.shown(url)
            if url != asked:
                what = f"{addresses.host(asked)} redirects to {what}, which"
            raise HttpError(
                f"{what} is plain http, where anybody on the way can change what comes",
                f"use https://, or allow it by name: --allow-insecure {host}",
            )

    def _authorised(
        self, method: str, url: str, headers: dict[str, str], timeout: float, access: Access
    ) -> Answer:
        transport = self._transport(url)
        times = (min(CONNECT, timeout), timeout)
        known = access.authorization(url)
        answer = transport.answer(method, url, self._headers(headers, known), times)
        if answer.status_code == 401:
            found = access.refused(url, answer, known)
            if found and found != known:
                answer.close()
                answer = transport.answer(method, url, self._headers(headers, found), times)
        return answer

    def _transport(self, url: str) -> Transport:
        verified = not self.is_insecure(url)
        prepare = self._prepare.get(_origin(url)) if verified else None
        with self._lock:
            if (verified, prepare) not in self._transports:
                self._transports[verified, prepare] = Transport(verified=verified, prepare=prepare)
            return self._transports[verified, prepare]

    def _headers(self, asked: dict[str, str], authorization: str) -> dict[str, str]:
        headers = {"User-Agent": f"envcheck/{__version__}", "Accept": "*/*", **asked}
        if authorization:
            headers["Authorization"] = authorization
        return headers


def _origin(url: str) -> tuple[str, str, int]:
    try:
        return addresses.origin(url)
    except ValueError:
        raise HttpError(
            f"{addresses.shown(url)} is not a URL that can be asked", addresses.QUOTED
        ) from None
