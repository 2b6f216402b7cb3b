"""One session with the indexes or a registry: every request over HTTP goes through it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

import requests

from ... import __version__
from . import addresses, errors, transport, trust
from .credentials import Credentials
from .errors import HttpError
from .pip_settings import pip_settings
from .transport import Transport

CONNECT = 10.0  # seconds until a connection must have come about
SILENCE = 30.0  # seconds without a byte
PATIENCE = 120.0  # seconds of a Retry-After that are waited for
PAGE_LIMIT = 64 << 20  # bytes of a page
ATTEMPTS = 3

_REDIRECTS = {301, 302, 303, 307, 308}
_MOST_REDIRECTS = 10

T = TypeVar("T")


class Session:
    """Verifies certificates, and sends credentials to their own host alone. Safe for threads.

    allow_insecure: host names that may be asked over plain http, or with any certificate. pause: seconds
    before the second retry; they double.
    """

    def __init__(
        self,
        allow_insecure: Collection[str] = (),
        *,
        pause: float = 1.0,
    ) -> None:
        self._insecure = {name.lower() for name in allow_insecure}
        self._pause = pause
        self._credentials = Credentials()
        self._transports: dict[bool, Transport] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends pauses between attempts at once, and lets go of the connections."""
        self._stop.set()
        for each in self._transports.values():
            each.close()

    def get(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        timeout: float = SILENCE,
        attempts: int = ATTEMPTS,
        file: bool = False,
        limit: int | None = None,
    ) -> requests.Response:
        """The answer, with a status below 300 (or 304). A page is read already, of at most ``limit`` bytes.

        headers: an Authorization among them, "" too, is in the place of what is known of the host.
        timeout: seconds without a byte. file: a file is asked for, its body is for ``transport.pieces``,
        and a web page is an error. Raises HttpError.
        """

        def once() -> requests.Response:
            answer = self._followed(method, url, dict(headers or {}), timeout)
            if not file:
                transport.read(answer, limit or PAGE_LIMIT)
            elif _kind(answer).startswith(("text/html", "application/xhtml")):
                answer.close()
                raise errors.page_for_file(answer.url)
            return answer

        return self.retried(once, attempts)

    def retried(self, work: Callable[[], T], attempts: int = ATTEMPTS) -> T:
        """Do it, and again after a pause where it raises an HttpError that says so."""
        for attempt in range(attempts - 1):
            try:
                return work()
            except HttpError as error:
                pause = max(error.wait, attempt and self._pause * 2.0 ** (attempt - 1))
                if not error.again or pause > PATIENCE or self._stop.wait(pause):
                    raise
        return work()

    def learn(self, url: str, index: str = "") -> None:
        """Use an index's credentials for all files on its host: its URL's, or, by the index's name,
        those in UV_INDEX_<NAME>_USERNAME and _PASSWORD. Raises HttpError for what is no URL."""
        _origin(url)
        self._credentials.learn(url, index)

    def is_insecure(self, url: str) -> bool:
        """Whether the user allowed plain http and any certificate for its host."""
        return bool({addresses.host(url), _origin(url)[1]} & self._insecure)

    def permit(self, url: str, asked: str = "") -> None:
        """Raises HttpError for an address that is none of https, this machine's, or allowed by name.

        asked: what redirected to it.
        """
        scheme, host, _ = _origin(url)
        if not host or scheme not in ("http", "https"):
            raise HttpError(f"{addresses.shown(url)} is not a URL with https://")
        if scheme == "https" or self.is_insecure(url):
            return
        what = addresses.shown(url)
        if urlsplit(asked).scheme == "https":
            raise HttpError(
                f"{addresses.host(asked)} redirects from https to http ({what}), and that is refused: a"
                " network that asks for a log-in does so, and an attacker",
                f"--allow-insecure {host} follows it anyway",
            )
        if not addresses.is_loopback(url):
            if asked not in ("", url):
                what = f"{addresses.host(asked)} redirects to {what}, which"
            raise HttpError(
                f"{what} is plain http, where anybody on the way can change what comes",
                f"use https://, or allow it by name: --allow-insecure {host}",
            )

    def credentials(self, url: str) -> tuple[str, str] | None:
        """User name and password that are known for this URL's host, for a program that asks it, too."""
        return self._credentials.known(url)

    def public(self, url: str) -> str:
        """The URL without credentials."""
        return addresses.public(url)

    def _followed(
        self, method: str, url: str, headers: dict[str, str], timeout: float
    ) -> requests.Response:
        """One request and its redirects. What another host must not know stays behind."""
        asked = url
        for _ in range(_MOST_REDIRECTS + 1):
            self.permit(url, asked)
            self._credentials.learn(url)
            sent = {"User-Agent": f"envcheck/{__version__}", "Accept": "*/*"}
            sent |= {"Authorization": self._credentials.authorization(url), **headers}
            answer = self._transport(url).answer(
                method,
                addresses.public(url),
                {name: value for name, value in sent.items() if value},
                (min(CONNECT, timeout), timeout),
            )
            location = answer.headers.get("Location", "")
            if answer.status_code not in _REDIRECTS or not location:
                return self._checked(answer)
            answer.close()
            target = _target(url, location)
            if _origin(target) != _origin(url) and "Authorization" in headers:
                headers["Authorization"] = ""
            url = target
        raise HttpError(f"{addresses.shown(asked)} redirects in a circle")

    def _checked(self, answer: requests.Response) -> requests.Response:
        """Raises HttpError for a status that is an error."""
        if answer.status_code < 300 or answer.status_code == 304:
            return answer
        answer.close()
        hint = self._credentials.hint(answer.url) if answer.status_code in (401, 403) else ""
        raise errors.of_status(answer.url, answer.status_code, answer.headers, credentials=hint)

    def _transport(self, url: str) -> Transport:
        verified = not self.is_insecure(url)
        with self._lock:
            if verified not in self._transports:
                settings = pip_settings(os.environ)
                proxy, cert = (
                    settings[key].value if key in settings else "" for key in ("proxy", "cert")
                )
                cert = cert if Path(cert).is_file() else ""
                context = trust.verifying([cert]) if verified else trust.unverified()
                self._transports[verified] = Transport(context, proxy)
            return self._transports[verified]


def _kind(answer: requests.Response) -> str:
    return answer.headers.get("Content-Type", "").strip().lower()


def _target(url: str, location: str) -> str:
    """Where a redirect leads, without credentials. Raises HttpError for what is not an address."""
    # Header bytes come as Latin-1, and are UTF-8 where they are not ASCII.
    text = location.encode("latin-1", "replace").decode("utf-8", "replace")
    try:
        return addresses.public(urljoin(url, text))
    except ValueError:
        raise HttpError(
            f"{addresses.shown(url)} redirects to something that is not an address"
        ) from None


def _origin(url: str) -> tuple[str, str, int]:
    try:
        return addresses.origin(url)
    except ValueError:
        raise HttpError(
            f"{addresses.shown(url)} is not a URL that can be asked", addresses.QUOTED
        ) from None
