"""How a registry is reached: over TLS or not, with which certificates, and with which tokens.

Tokens last for minutes and downloads for hours, so that one is fetched whenever the registry asks for it.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import requests
from requests.utils import parse_dict_header

from .. import foreign_json
from ..network import addresses
from ..network.credentials import basic
from ..network.errors import HttpError
from .logins import Login, Logins

if TYPE_CHECKING:
    from ..network.session import Session

# Registries whose API is at another host than their name says. Source: the reference package of the
# distribution project, and https://docs.docker.com/reference/api/registry/
_API_HOSTS = {"docker.io": "registry-1.docker.io"}

# Where podman and docker keep certificates for one registry: below the user's home where there is no /
# in front.
_CERTIFICATES = (
    ".config/containers/certs.d",
    ".config/docker/certs.d",
    "/etc/containers/certs.d",
    "/etc/docker/certs.d",
)

_LASTS = 60.0  # seconds, for a token that does not say how long
_EARLY = 5.0  # seconds before its end that a token is not used any more
_LARGEST = 1 << 20  # bytes of an answer with a token
_PROBE = 10.0  # seconds
_SECONDS = 60.0  # for one answer, all attempts and redirects included

_REPOSITORY = re.compile(r"/v2/(.+?)/(?:manifests|blobs|tags)/")
_BEARER = re.compile(r"(?:^|,)\s*bearer\s+(.*)", re.IGNORECASE | re.DOTALL)


class _Token(msgspec.Struct):
    """What a token server answers."""

    token: str | None = None
    access_token: str | None = None
    expires_in: float | None = None


class RegistryAccess:
    """Logs in to one registry, and nowhere else. Safe for threads; nothing of it is ever shown."""

    def __init__(self, session: Session, name: str, logins: Logins) -> None:
        """From here on the session logs in there. name: as images name it, "docker.io"."""
        self.name = name
        self.login: Login | None = None  # what the registry was shown, after it had asked
        self._session = session
        self._logins = logins
        self._headers: dict[str, tuple[str, float]] = {}  # by repository; good until
        self._lock = threading.Lock()
        host = _API_HOSTS.get(name, name)
        self.base = f"https://{host}"
        session.add_registry(self.base, self, _own_certificates((name, host)))
        if not self._speaks_tls():
            self.base = f"http://{host}"
            session.add_registry(self.base, self, None)

    def _speaks_tls(self) -> bool:
        """Always, unless it is allowed to be asked over plain http."""
        if not (addresses.is_loopback(self.base) or self._session.is_insecure(self.base)):
            return True
        try:
            nobody = {"Authorization": ""}
            url = f"{self.base}/v2/"
            self._session.get(url, headers=nobody, attempts=1, timeout=_PROBE, seconds=_SECONDS)
        except HttpError as error:
            # A status, or a certificate that is not to be trusted.
            return error.status is not None or not error.again
        return True

    def authorization(self, url: str) -> str:
        header, until = self._headers.get(_repository(url), ("", 0.0))
        return header if time.monotonic() < until else ""

    def refused(self, url: str, answer: requests.Response, sent: str) -> str:
        with self._lock:
            known = self.authorization(url)
            if known and known != sent:  # another thread was quicker
                return known
            repository = _repository(url)
            login = self.login = self._logins.of(self.name, repository)
            asked = answer.headers.get("WWW-Authenticate", "")
            bearer = _BEARER.search(asked)
            if bearer:
                found = self._fetched(parse_dict_header(bearer[1]), login, repository)
            elif login and login.user and re.match(r"\s*basic\b", asked, re.IGNORECASE):
                found = basic(login.user, login.password), float("inf")
            else:
                return ""
            self._headers[repository] = found
            return found[0]

    def hint(self, url: str) -> str:
        return self._logins.hint(self.name, _repository(url))

    def get(self, path: str, limit: int, **how: Any) -> requests.Response:
        """What this registry has below /v2/: at most so many bytes, in a bounded time. Raises HttpError."""
        url = f"{self.base}/v2/{path}"
        return self._session.get(url, limit=limit, seconds=_SECONDS, **how)

    def _fetched(
        self, asked: dict[str, str | None], login: Login | None, repository: str
    ) -> tuple[str, float]:
        """A token of the server that the registry names, and until when it is good. Raises HttpError."""
        realm = self._realm(asked.get("realm") or "")
        question = {"service": asked.get("service")}
        # Never more than to read this one repository, whatever is offered.
        question["scope"] = f"repository:{repository}:pull" if repository else asked.get("scope")
        query = urlencode({k: v for k, v in question.items() if v}, quote_via=quote)
        # An identity token opens nothing here, and a public image needs none.
        usable = login is not None and not login.identity_token
        header = basic(login.user, login.password) if login and usable else ""
        started = time.monotonic()
        try:
            answer = self._session.get(
                f"{realm}{'&' if urlsplit(realm).query else '?'}{query}",
                headers={"Authorization": header},
                limit=_LARGEST,
                seconds=_SECONDS,
            )
            told = foreign_json.decode(answer.content, _Token)
            token = told.token or told.access_token or ""
            if not (token.isascii() and token.isprintable() and token):
                raise ValueError
        except ValueError:
            raise self._no_token(f"{addresses.host(realm)} sends none") from None
        except HttpError as error:
            hint = self._logins.hint(self.name, repository)
            refused = error.status in (400, 401, 403)
            raise self._no_token(str(error), hint if refused else error.hint) from None
        return f"Bearer {token}", started + (told.expires_in or _LASTS) - _EARLY

    def _realm(self, said: str) -> str:
        """The token server's URL. Raises HttpError for one that credentials must not be sent to."""
        realm = addresses.public(said)
        try:
            scheme, host, _ = addresses.origin(realm)
        except ValueError:
            scheme, host = "", ""
        if not host or scheme not in ("http", "https"):
            raise self._no_token("it names a token server that is not an address")
        if scheme == "http" and host != addresses.origin(self.base)[1]:
            raise self._no_token(
                f"it sends whoever logs in to {addresses.shown(realm)}, which is plain http of another"
                " host, and that is refused",
                "anybody on the way could read the user name and the password",
            )
        return realm

    def _no_token(self, why: str, hint: str = "") -> HttpError:
        return HttpError(f"{self.name} gives no token: {why}", hint)


def _repository(url: str) -> str:
    """ "nvidia/tensorflow"; "" for the registry as a whole."""
    found = _REPOSITORY.match(urlsplit(url).path)
    return found[1] if found else ""


def _own_certificates(names: Sequence[str]) -> Callable[[ssl.SSLContext], None] | None:
    """Loads what is kept for a registry of these names ("nvcr.io", "localhost:5000"); None: nothing is."""
    home = os.environ.get("HOME", "")
    found: list[Path] = []
    for folder in (Path(home, folder, name) for folder in _CERTIFICATES for name in set(names)):
        with contextlib.suppress(OSError):
            found += sorted(path for path in folder.iterdir() if path.suffix in (".crt", ".cert"))

    def load(context: ssl.SSLContext) -> None:
        """What cannot be read or is no certificate, the handshake will miss."""
        for path in found:
            with contextlib.suppress(OSError):  # ssl.SSLError is one
                if path.suffix == ".crt":
                    context.load_verify_locations(cafile=path)
                else:
                    # Without a password, so that nobody is asked for one at the terminal.
                    context.load_cert_chain(path, path.with_suffix(".key"), password=b"")

    return load if found else None
