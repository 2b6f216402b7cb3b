"""One session with the indexes: every request that envcheck makes over HTTP goes through it."""

from __future__ import annotations

import base64
import threading
from collections.abc import Collection
from types import TracebackType
from urllib.parse import urljoin, urlsplit

import requests

from ... import __version__
from . import addresses, errors
from .credentials import Credentials
from .errors import HttpError
from .retries import Attempts, Retries, retry_after
from .transport import Answer, Transport

CONNECT = 10.0  # seconds until a connection must have come about
SILENCE = 30.0  # seconds without a byte

_REDIRECTS = {301, 302, 303, 307, 308}
_MOST_REDIRECTS = 10
_SMALL = 1 << 20  # bytes: read whole at once, so that a cut in them is mended here
_PAGE_LIMIT = 64 << 20  # bytes of a page
_PAGES = ("text/html", "application/xhtml", "application/json", "application/vnd.pypi.simple")


class Session:
    """Verified, patient, and silent about credentials. Safe for threads.

    allow_insecure: host names that may be asked over plain http, or with a certificate that nobody
    vouches for.
    """

    def __init__(
        self, allow_insecure: Collection[str] = (), *, retries: Retries | None = None
    ) -> None:
        self._insecure = {name.lower() for name in allow_insecure}
        self._retries = retries or Retries()
        self._credentials = Credentials()
        self._transports: dict[bool, Transport] = {}
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
    ) -> requests.Response:
        """The answer to a GET, with a status below 300 (or 304); its body is still to be read.

        Pages and bodies up to 1 MiB are read already, so that a cut in them costs another attempt and
        not an error. timeout: seconds without a byte. attempts: 1 leaves trying again to the caller.
        file: a file is asked for, its body is left on the connection, and a web page is an error.
        Raises HttpError.
        """
        tried = Attempts(self._patience(attempts), self._stop)
        while True:
            try:
                answer = self._followed("GET", url, headers or {}, timeout, file)
                return answer if file else _read(answer)
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
                return self._followed("HEAD", url, headers or {}, timeout, False)
            except HttpError as error:
                tried.failed(error)

    def learn(self, url: str, index: str = "") -> None:
        """Use an index's credentials for all files on its host: its URL's, or, by the index's name,
        those in UV_INDEX_<NAME>_USERNAME and _PASSWORD. ``get`` learns what is in its URL by itself.
        Raises HttpError for what is no URL."""
        _origin(url)
        self._credentials.learn(url, index)

    def public(self, url: str) -> str:
        """The URL without credentials."""
        return addresses.public(url)

    def _patience(self, attempts: int | None) -> Retries:
        if attempts is None:
            return self._retries
        return Retries(
            attempts=attempts,
            connecting=min(attempts, self._retries.connecting),
            first=self._retries.first,
            longest=self._retries.longest,
        )

    def _followed(
        self, method: str, url: str, headers: dict[str, str], timeout: float, file: bool
    ) -> Answer:
        """One request and its redirects. What another host must not know stays behind."""
        asked = url
        for _ in range(_MOST_REDIRECTS + 1):
            self._permit(url, asked)
            self._credentials.learn(url)
            answer = self._authorised(method, addresses.public(url), headers, timeout)
            location = answer.headers.get("Location", "")
            if answer.status_code not in _REDIRECTS or not location:
                return _checked(answer, file, known=self._credentials.known(url) is not None)
            answer.close()
            target = _target(url, location)
            if _origin(target) != _origin(url):
                headers = {k: v for k, v in headers.items() if k.lower() != "authorization"}
            url = target
        raise HttpError(f"{addresses.shown(asked)} redirects in a circle")

    def _permit(self, url: str, asked: str) -> None:
        """Raises HttpError for a URL that is none of https, this machine, or allowed by its host's name."""
        scheme, host, _ = _origin(url)
        if not host or scheme not in ("http", "https"):
            raise HttpError(f"{addresses.shown(url)} is not a URL with https://")
        if scheme == "https" or self._is_insecure(url):
            return
        if urlsplit(asked).scheme == "https":
            raise HttpError(
                f"{addresses.host(asked)} redirects from https to http ({addresses.shown(url)}),"
                " and that is refused: a network that asks for a log-in does so, and an attacker",
                f"--allow-insecure {host} follows it all the same",
            )
        if not addresses.is_loopback(url):
            what = addresses.shown(url)
            if url != asked:
                what = f"{addresses.host(asked)} redirects to {what}, which"
            raise HttpError(
                f"{what} is plain http, where anybody on the way can change what comes",
                f"use https://, or allow it by name: --allow-insecure {host}",
            )

    def _is_insecure(self, url: str) -> bool:
        return bool({addresses.host(url), _origin(url)[1]} & self._insecure)

    def _authorised(self, method: str, url: str, headers: dict[str, str], timeout: float) -> Answer:
        transport = self._transport(url)
        times = (min(CONNECT, timeout), timeout)
        known = self._credentials.known(url)
        answer = transport.answer(method, url, self._headers(headers, known), times)
        if answer.status_code == 401:
            found = self._credentials.ask_keyring(url)
            if found and found != known:
                answer.close()
                answer = transport.answer(method, url, self._headers(headers, found), times)
        return answer

    def _transport(self, url: str) -> Transport:
        verified = not self._is_insecure(url)
        with self._lock:
            if verified not in self._transports:
                self._transports[verified] = Transport(verified=verified)
            return self._transports[verified]

    def _headers(self, asked: dict[str, str], pair: tuple[str, str] | None) -> dict[str, str]:
        headers = {"User-Agent": f"envcheck/{__version__}", "Accept": "*/*", **asked}
        if pair:
            token = base64.b64encode(":".join(pair).encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        return headers


def _target(url: str, location: str) -> str:
    """Where a redirect leads, without credentials. Raises HttpError for what is no address."""
    # Header bytes come as Latin-1, and are UTF-8 where they are not ASCII.
    text = location.encode("latin-1", "replace").decode("utf-8", "replace")
    try:
        return addresses.public(urljoin(url, text))
    except ValueError:
        raise HttpError(
            f"{addresses.shown(url)} redirects to something that is no address"
        ) from None


def _checked(answer: Answer, file: bool, known: bool) -> Answer:
    """Raises HttpError for a status that is an error, and for a page in the place of a file."""
    if answer.status_code < 300 or answer.status_code == 304:
        if file and _kind(answer).startswith(("text/html", "application/xhtml")):
            answer.close()
            raise errors.page_for_file(answer.url)
        return answer
    answer.close()
    raise errors.of_status(
        answer.url,
        answer.status_code,
        answer.headers,
        wait=retry_after(answer.headers),
        known=known,
    )


def _read(answer: Answer) -> Answer:
    """Load what is small. Raises HttpError where it breaks off or does not end."""
    length = answer.headers.get("Content-Length", "")
    small = length.isdigit() and int(length) <= _SMALL
    if small or _kind(answer).startswith(_PAGES):
        answer.limit = _PAGE_LIMIT
        _ = answer.content  # it stays in the answer
    return answer


def _kind(answer: Answer) -> str:
    return answer.headers.get("Content-Type", "").strip().lower()


def _origin(url: str) -> tuple[str, str, int]:
    try:
        return addresses.origin(url)
    except ValueError:
        raise HttpError(
            f"{addresses.shown(url)} is not a URL that can be asked", addresses.QUOTED
        ) from None
