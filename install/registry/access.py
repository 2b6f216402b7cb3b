"""How a registry is reached: over TLS or not, with which certificates, and with which token.

Sources: the token authentication specification of the distribution project, and containers-certs.d(5).
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
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

# Where podman and docker keep a registry's certificate authorities; relative ones are in the user's home.
_CERTIFICATES = (
    ".config/containers/certs.d",
    ".config/docker/certs.d",
    "/etc/containers/certs.d",
    "/etc/docker/certs.d",
)
_LARGEST = 1 << 20  # bytes of an answer with a token
_REPOSITORY = re.compile(r"/v2/(.+?)/(?:manifests|blobs)/")
_BEARER = re.compile(r"(?:^|,)\s*bearer\s+(.*)", re.IGNORECASE | re.DOTALL)


class _Token(msgspec.Struct):
    token: str | None = None
    access_token: str | None = None


class Registry:
    """Logs in to one registry, once it asks for that, and to no other host. Safe for threads."""

    def __init__(self, session: Session, name: str, logins: Logins) -> None:
        """name: as images name it, "docker.io"."""
        self.login: Login | None = None  # that was sent
        self._name = name
        self._logins = logins
        self._headers: dict[str, str] = {}  # by repository
        self._lock = threading.Lock()
        host = _API_HOSTS.get(name, name)
        self._session = session.trusting(_authorities(name, host))
        self.base = f"https://{host}"
        if not self._has_tls():
            self.base = f"http://{host}"
        self.is_insecure = self.base.startswith("http:") or session.is_insecure(self.base)

    def get(
        self, url: str, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> requests.Response:
        """As of Session. Raises HttpError."""
        repository = found[1] if (found := _REPOSITORY.match(urlsplit(url).path)) else ""
        known = {**(headers or {}), "Authorization": self._headers.get(repository, "")}
        try:
            return self._session.get(url, headers=known, **options)
        except HttpError as error:
            if error.status not in (401, 403) or not error.url.startswith(f"{self.base}/"):
                raise
            error.hint = self._logins.hint(self._name, repository)
            header = self._renewed(repository, known["Authorization"], error)
            if header in ("", known["Authorization"]):
                raise
        known["Authorization"] = header
        try:
            return self._session.get(url, headers=known, **options)
        except HttpError as error:
            if error.status in (401, 403):
                error.hint = self._logins.hint(self._name, repository)
            raise

    def permit(self, url: str) -> None:
        self._session.permit(url)

    def retried(self, *arguments: Any) -> Any:
        return self._session.retried(*arguments)

    def _renewed(self, repository: str, sent: str, error: HttpError) -> str:
        """Threads that are refused together share one new header. "": none."""
        with self._lock:
            if error.status == 401 and self._headers.get(repository, "") == sent:
                self._headers[repository] = self._log_in(repository, error.headers)
            return self._headers.get(repository, "")

    def _log_in(self, repository: str, headers: Mapping[str, str]) -> str:
        """The Authorization header for the registry's challenge; "" for none."""
        login = self.login = self._logins.of(self._name, repository)
        challenge = headers.get("WWW-Authenticate", "")
        if bearer := _BEARER.search(challenge):
            return self._token(parse_dict_header(bearer[1]), login, repository)
        if login and re.match(r"\s*basic\b", challenge, re.IGNORECASE):
            return basic(login.user, login.password)
        return ""

    def _token(self, challenge: dict[str, str | None], login: Login | None, repository: str) -> str:
        """From the server that the registry names. Raises HttpError."""
        realm = self._realm(challenge.get("realm") or "")
        # Never more than to read this one repository, whatever the registry asks for.
        scope = f"repository:{repository}:pull" if repository else None
        wanted = {"service": challenge.get("service"), "scope": scope}
        query = urlencode({k: v for k, v in wanted.items() if v}, quote_via=quote)
        url = f"{realm}{'&' if urlsplit(realm).query else '?'}{query}"
        header = {"Authorization": basic(login.user, login.password) if login else ""}
        try:
            answer = self._session.get(url, headers=header, limit=_LARGEST)
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
        return f"Bearer {token}"

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

    def _has_tls(self) -> bool:
        """Always, unless plain http is allowed: for this machine, and for hosts that the user names."""
        if not (addresses.is_loopback(self.base) or self._session.is_insecure(self.base)):
            return True
        try:
            self._session.get(f"{self.base}/v2/", headers={"Authorization": ""}, attempts=1)
        except HttpError as error:
            # TLS with an error status, or with a certificate that cannot be trusted.
            return error.status is not None or not error.again
        return True


def _authorities(*names: str) -> list[str]:
    """The files with certificate authorities that engines keep for a registry of these names."""
    home = os.environ.get("HOME", "")
    folders = [Path(home, folder, name) for folder in _CERTIFICATES for name in names]
    return sorted({str(path) for folder in folders for path in folder.glob("*.crt")})
