"""One session with the indexes and registries: every request over HTTP goes through it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Protocol
from urllib.parse import urljoin, urlsplit

import msgspec
import requests
from urllib3.util import Retry

from ... import __version__, json_text
from ...safe_text import one_line
from . import addresses, errors, transport
from .credentials import Credentials
from .errors import HttpError
from .retries import Attempts, Deadline, retry_policy
from .transport import Transport

CONNECT = 10.0  # seconds until a connection must have come about
SILENCE = 30.0  # seconds without a byte
PAGE_LIMIT = 64 << 20  # bytes of a page

_REDIRECTS = {301, 302, 303, 307, 308}
_MOST_REDIRECTS = 10
_MOST_SAID = 1 << 16  # bytes of a refusal

Prepare = Callable[[ssl.SSLContext], None]
Origin = tuple[str, str, int]


class Access(Protocol):
    """Who may send which Authorization header where. "" is no header."""

    def authorization(self, url: str) -> str:
        """To send along unasked."""

    def refused(self, url: str, answer: requests.Response, sent: str) -> str:
        """After a 401: to send in a second attempt, "" where there is nothing better. Raises HttpError."""

    def hint(self, url: str) -> str:
        """What to do about a 401 or a 403."""


class Session:
    """Verified, patient, and silent about credentials. Safe for threads.

    allow_insecure: host names that may be asked over plain http, or with a certificate that nobody
    vouches for.
    """

    def __init__(
        self, allow_insecure: Collection[str] = (), *, retries: Retry | None = None
    ) -> None:
        self._insecure = {name.lower() for name in allow_insecure}
        self._retries = retries or retry_policy()
        self._credentials = Credentials()
        self._registries: dict[Origin, tuple[Access, Prepare | None]] = {}
        self._transports: dict[tuple[bool, Prepare | None], Transport] = {}
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
        attempts: int | None = None,
        file: bool = False,
        limit: int | None = None,
        seconds: float | None = None,
    ) -> requests.Response:
        """The answer, with a status below 300 (or 304), to a GET, and to a HEAD likewise.

        A page is read already, so that a cut in it costs another attempt and not an error. limit: its bytes.
        headers: an Authorization among them, "" too, is in the place of what is known of the host.
        timeout: seconds without a byte. seconds: for all of it, every attempt and every redirect included, of
        a page. attempts: 1 leaves trying again to the caller. file: a file is asked
        for, its body is left to ``transport.pieces``, and a web page is an error. Raises HttpError.
        """
        retries = self._retries if attempts is None else self._retries.new(total=attempts - 1)
        ends = Deadline(url, seconds)
        tried = Attempts(retries, self._stop, ends)
        while True:
            try:
                answer = self._followed(method, url, dict(headers or {}), timeout, ends)
                if file and _kind(answer).startswith(("text/html", "application/xhtml")):
                    answer.close()
                    raise errors.page_for_file(answer.url)
                if not file:
                    transport.read(answer, limit or PAGE_LIMIT, ends)
                return answer
            except HttpError as error:
                tried.failed(error)

    def learn(self, url: str, index: str = "") -> None:
        """Use an index's credentials for all files on its host: its URL's, or, by the index's name,
        those in UV_INDEX_<NAME>_USERNAME and _PASSWORD. ``get`` learns what is in its URL by itself.
        Raises HttpError for what is no URL."""
        _origin(url)
        self._credentials.learn(url, index)

    def add_registry(self, base: str, access: Access, prepare: Prepare | None) -> None:
        """``access`` logs in to what is below BASE/v2/.

        prepare: loads certificates that are for it alone into a TLS context.
        """
        self._registries[_origin(base)] = access, prepare

    def allow_insecure(self, host: str) -> None:
        """Allow plain http and any certificate for one more host, by the user's own settings."""
        self._insecure.add(host.lower())

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
        self, method: str, url: str, headers: dict[str, str], timeout: float, ends: Deadline
    ) -> requests.Response:
        """One request and its redirects. What another host must not know stays behind."""
        asked = url
        for _ in range(_MOST_REDIRECTS + 1):
            self.permit(url, asked)
            self._credentials.learn(url)
            access = self._access(url)
            least = ends.least(timeout)
            answer = self._sent(method, addresses.public(url), headers, least, access)
            location = answer.headers.get("Location", "")
            if answer.status_code not in _REDIRECTS or not location:
                return _checked(answer, access)
            answer.close()
            target = _target(url, location)
            if _origin(target) != _origin(url) and "Authorization" in headers:
                headers["Authorization"] = ""
            url = target
        raise HttpError(f"{addresses.shown(asked)} redirects in a circle")

    def _sent(
        self, method: str, url: str, headers: dict[str, str], timeout: float, access: Access
    ) -> requests.Response:
        """Once, and once more where there is a better Authorization after a 401."""

        def send(authorization: str) -> requests.Response:
            said = {"User-Agent": f"envcheck/{__version__}", "Accept": "*/*", **headers}
            said["Authorization"] = authorization
            said = {name: value for name, value in said.items() if value}
            return self._transport(url).answer(method, url, said, (min(CONNECT, timeout), timeout))

        if "Authorization" in headers:
            return send(headers["Authorization"])
        known = access.authorization(url)
        answer = send(known)
        if answer.status_code == 401:
            found = access.refused(url, answer, known)
            if found and found != known:
                answer.close()
                answer = send(found)
        return answer

    def _access(self, url: str) -> Access:
        registry = self._registries.get(_origin(url))
        return (
            registry[0] if registry and urlsplit(url).path.startswith("/v2/") else self._credentials
        )

    def _transport(self, url: str) -> Transport:
        verified = not self.is_insecure(url)
        registry = self._registries.get(_origin(url))
        prepare = registry[1] if registry and verified else None
        with self._lock:
            if (verified, prepare) not in self._transports:
                self._transports[verified, prepare] = Transport(verified=verified, prepare=prepare)
            return self._transports[verified, prepare]


class _OneError(msgspec.Struct):
    message: str = ""
    code: str = ""


class _Refusal(msgspec.Struct):
    errors: list[_OneError] = []
    message: str = ""
    details: str = ""


def _checked(answer: requests.Response, access: Access) -> requests.Response:
    """Raises HttpError for a status that is an error."""
    if answer.status_code < 300 or answer.status_code == 304:
        return answer
    said = _said(answer)
    answer.close()
    raise errors.of_status(
        answer.url,
        answer.status_code,
        answer.headers,
        credentials=access.hint(answer.url) if answer.status_code in (401, 403) else "",
        said=said,
    )


def _said(answer: requests.Response) -> str:
    """What a registry or an index says of its refusal in JSON: {"errors": [{"message": …}]}."""
    if "json" not in _kind(answer):
        return ""
    try:
        transport.read(answer, _MOST_SAID, Deadline(answer.url, SILENCE))
        told = json_text.read(answer.content, _Refusal)
    except (HttpError, ValueError):
        return ""
    words = [one.message or one.code for one in told.errors] or [told.message or told.details]
    return one_line("; ".join(dict.fromkeys(filter(None, words)))).rstrip(".")


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


def _origin(url: str) -> Origin:
    try:
        return addresses.origin(url)
    except ValueError:
        raise HttpError(
            f"{addresses.shown(url)} is not a URL that can be asked", addresses.QUOTED
        ) from None
