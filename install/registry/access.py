"""How a registry is reached: over TLS or not, with which certificates, and with which token.

Sources: the token authentication specification of the distribution project, containers-certs.d(5), and
https://docs.docker.com/engine/security/certificates/
"""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import requests
from requests.utils import parse_dict_header

from ... import json_text
from ..network import addresses
from ..network.credentials import basic
from ..network.errors import HttpError
from .logins import Login, Logins

if TYPE_CHECKING:
    from ..network.session import Session

# Registries whose API is at another host than their name.
# Source: https://docs.docker.com/reference/api/registry/
_API_HOSTS = {"docker.io": "registry-1.docker.io"}

# Where podman and docker keep a registry's certificates; relative ones are in the user's home.
_CERTIFICATES = (
    ".config/containers/certs.d",
    ".config/docker/certs.d",
    "/etc/containers/certs.d",
    "/etc/docker/certs.d",
)

_LIFETIME = 60.0  # seconds, for a token that does not name its own
_EARLY = 5.0  # seconds before its end that a token is renewed
_LARGEST = 1 << 20  # bytes of an answer with a token
_PROBE = 10.0  # seconds
_SECONDS = 60.0  # for one answer, with all attempts and redirects

_REPOSITORY = re.compile(r"/v2/(.+?)/(?:manifests|blobs|tags)/")
_BEARER = re.compile(r"(?:^|,)\s*bearer\s+(.*)", re.IGNORECASE | re.DOTALL)


class _Token(msgspec.Struct):
    """What a token server answers."""

    token: str | None = None
    access_token: str | None = None
    expires_in: float | None = None


class RegistryAccess:
    """Logs the session in to one registry, and to no other host. Safe for threads."""

    def __init__(self, session: Session, name: str, logins: Logins) -> None:
        """name: as images name it, "docker.io"."""
        self.login: Login | None = None  # what was sent after the registry had asked for it
        self._name = name
        self._session = session
        self._logins = logins
        self._headers: dict[str, tuple[str, float]] = {}  # by repository; valid until
        self._lock = threading.Lock()
        host = _API_HOSTS.get(name, name)
        self.base = f"https://{host}"
        session.add_registry(self.base, self, _certificates({name, host}))
        if not self._has_tls():
            self.base = f"http://{host}"
            session.add_registry(self.base, self, None)

    def get(self, path: str, limit: int, **options: Any) -> requests.Response:
        """A page below /v2/, of at most ``limit`` bytes and in a bounded time. Raises HttpError."""
        url = f"{self.base}/v2/{path}"
        return self._session.get(url, limit=limit, seconds=_SECONDS, **options)

    def authorization(self, url: str) -> str:
        """The header that is known to be valid now, or ""."""
        header, until = self._headers.get(_repository(url), ("", 0.0))
        return header if time.monotonic() < until else ""

    def refused(self, url: str, answer: requests.Response, sent: str) -> str:
        """The header for a second attempt after a 401, or "". Raises HttpError."""
        with self._lock:
            known = self.authorization(url)
            if known and known != sent:  # another thread was quicker
                return known
            return self._answer(_repository(url), answer)

    def _answer(self, repository: str, answer: requests.Response) -> str:
        """The header for the registry's challenge, which is kept."""
        login = self.login = self._logins.of(self._name, repository)
        challenge = answer.headers.get("WWW-Authenticate", "")
        if bearer := _BEARER.search(challenge):
            self._headers[repository] = self._token(parse_dict_header(bearer[1]), login, repository)
        elif login and re.match(r"\s*basic\b", challenge, re.IGNORECASE):
            self._headers[repository] = basic(login.user, login.password), float("inf")
        else:
            return ""
        return self._headers[repository][0]

    def hint(self, url: str) -> str:
        return self._logins.hint(self._name, _repository(url))

    def _has_tls(self) -> bool:
        """Always, unless plain http is allowed: for this machine, and for hosts that the user names."""
        if not (addresses.is_loopback(self.base) or self._session.is_insecure(self.base)):
            return True
        url, headers = f"{self.base}/v2/", {"Authorization": ""}
        try:
            self._session.get(url, headers=headers, attempts=1, timeout=_PROBE, seconds=_SECONDS)
        except HttpError as error:
            # TLS with an error status, or with a certificate that cannot be trusted.
            return error.status is not None or not error.again
        return True

    def _token(
        self, challenge: dict[str, str | None], login: Login | None, repository: str
    ) -> tuple[str, float]:
        """A token from the server that the registry names, and until when it is valid. Raises HttpError."""
        realm = self._realm(challenge.get("realm") or "")
        # Never more than to read this one repository, whatever the registry asks for.
        scope = f"repository:{repository}:pull" if repository else challenge.get("scope")
        wanted = {"service": challenge.get("service"), "scope": scope}
        query = urlencode({k: v for k, v in wanted.items() if v}, quote_via=quote)
        url = f"{realm}{'&' if urlsplit(realm).query else '?'}{query}"
        header = {"Authorization": basic(login.user, login.password) if login else ""}
        began = time.monotonic()
        try:
            answer = self._session.get(url, headers=header, limit=_LARGEST, seconds=_SECONDS)
            found = json_text.read(answer.content, _Token)
            token = found.token or found.access_token or ""
            if not (token.isascii() and token.isprintable() and token):
                raise ValueError
        except ValueError:
            raise self._no_token(f"{addresses.host(realm)} sends none") from None
        except HttpError as error:
            refused = error.status in (400, 401, 403)
            hint = self._logins.hint(self._name, repository) if refused else error.hint
            raise self._no_token(str(error), hint) from None
        return f"Bearer {token}", began + (found.expires_in or _LIFETIME) - _EARLY

    def _realm(self, text: str) -> str:
        """The token server's URL. Raises HttpError for one that must not get credentials."""
        realm = addresses.public(text)
        try:
            scheme, host, _ = addresses.origin(realm)
        except ValueError:
            scheme, host = "", ""
        if not host or scheme not in ("http", "https"):
            raise self._no_token("the address of its token server is invalid")
        if scheme == "http" and host != addresses.origin(self.base)[1]:
            raise self._no_token(
                f"its token server, {addresses.shown(realm)}, is another host without TLS",
                "anybody on the way could read the user name and the password",
            )
        return realm

    def _no_token(self, why: str, hint: str = "") -> HttpError:
        return HttpError(f"{self._name} gives no token: {why}", hint)


def _repository(url: str) -> str:
    """ "nvidia/tensorflow"; "" for the registry itself."""
    found = _REPOSITORY.match(urlsplit(url).path)
    return found[1] if found else ""


def _certificates(names: set[str]) -> Callable[[ssl.SSLContext], None] | None:
    """Loads the certificates kept for a registry of these names; None if there are none."""
    home = os.environ.get("HOME", "")
    found = [
        path
        for folder in _CERTIFICATES
        for name in sorted(names)
        for path in sorted(Path(home, folder, name).glob("*"))
    ]
    authorities = [path for path in found if path.suffix == ".crt"]
    own = [path for path in found if path.suffix == ".cert"]

    def load(context: ssl.SSLContext) -> None:
        """A file that cannot be read is skipped; the handshake then fails where it was needed."""
        for path in authorities:
            with contextlib.suppress(OSError):  # ssl.SSLError is one
                context.load_verify_locations(cafile=path)
        for path in own:
            with contextlib.suppress(OSError):
                # An empty password, so that OpenSSL does not ask for one on the terminal.
                context.load_cert_chain(path, path.with_suffix(".key"), password=b"")

    return load if authorities or own else None
