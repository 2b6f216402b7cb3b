"""Asks a registry what an image is, to the byte; every byte of the answer is verified.

Sources: the OCI distribution specification 1.1, and the token authentication specification of the
distribution project.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import requests
from requests.utils import parse_dict_header

from ... import json_text
from ...exit_codes import CouldNotLook, UsageError
from ..network import addresses
from ..network.credentials import basic
from ..network.errors import HttpError
from . import documents
from .documents import LARGEST, ImageIndex
from .image import Image, PullOptions
from .logins import Login, Logins
from .reference import Reference, parse

if TYPE_CHECKING:
    from ..network.session import Session

# Registries whose API is at another host than their name.
# Source: https://docs.docker.com/reference/api/registry/
_API_HOSTS = {"docker.io": "registry-1.docker.io"}
_LARGEST_TOKEN = 1 << 20  # bytes of an answer with a token
_BEARER = re.compile(r"(?:^|,)\s*bearer\s+(.*)", re.IGNORECASE | re.DOTALL)


class RegistryClient:
    """Asks the registries that images are named by. Mirrors are the engine's, which pulls."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._logins = Logins(os.environ)
        self._registries: dict[str, _Registry] = {}

    def resolve(self, reference: Reference, machine: str) -> Image:
        """What the registry has for this machine. machine: as ``uname -m`` prints it.

        Raises UsageError for an unknown tag or digest and for something other than a container image, Cannot
        if it has nothing for this machine, CouldNotLook if it does not answer or the content does not match
        its digest.
        """
        data, kind = self._manifest(reference, reference.wanted)
        digest = documents.digest_of(data)
        found = documents.read(reference, data, kind)
        if isinstance(found, ImageIndex):
            chosen = documents.chosen(reference, found, machine)
            data, kind = self._manifest(reference, chosen.digest)
            found = documents.read(reference, data, kind or chosen.media_type)
        if isinstance(found, ImageIndex):
            raise CouldNotLook(f"{reference.registry} sends an index within an index: {reference}")
        config = self._get(reference, "blobs", found.config.digest).content
        _verify(reference, "config", config, found.config.digest)
        return documents.image_of(reference, digest, found, config, machine)

    def options(self, engine: str, image: Image) -> PullOptions:
        """What the engine needs for the pull and does not find by itself."""
        name = parse(image.reference).registry
        registry = self._registry(name)
        found = PullOptions(insecure=registry.is_insecure, registry=name)
        login = registry.login
        if login is None or engine in login.engines:
            return found
        return msgspec.structs.replace(found, user=login.user, password=login.password)

    def _registry(self, name: str) -> _Registry:
        if name not in self._registries:
            self._registries[name] = _Registry(self._session, name, self._logins)
        return self._registries[name]

    def _manifest(self, reference: Reference, wanted: str) -> tuple[bytes, str]:
        """The bytes of a manifest or an index, and the media type that the registry gives."""
        answer = self._get(reference, "manifests", wanted)
        for digest in (wanted, answer.headers.get("Docker-Content-Digest", "")):
            if digest.startswith("sha256:"):
                _verify(reference, "manifest", answer.content, digest)
        return answer.content, answer.headers.get("Content-Type", "")

    def _get(self, reference: Reference, kind: str, wanted: str) -> requests.Response:
        try:
            return self._registry(reference.registry).get(reference.repository, kind, wanted)
        except HttpError as error:
            if error.status == 404 and kind == "manifests":
                raise _unknown(reference, wanted) from None
            if reference.registry in str(error):
                raise
            # The host that failed may be one that the registry redirects to.
            sentence = f"{reference.registry} does not give {reference}: {error}"
            raise CouldNotLook(sentence, error.hint) from None


class _Registry:
    """One registry: logs in once it asks for that, and to no other host."""

    def __init__(self, session: Session, name: str, logins: Logins) -> None:
        """name: as images name it, "docker.io"."""
        self.login: Login | None = None  # that was sent
        self._session = session
        self._name = name
        self._logins = logins
        self._headers: dict[str, str] = {}  # Authorization by repository
        host = _API_HOSTS.get(name, name)
        self._base = f"https://{host}"
        if not self._has_tls():
            self._base = f"http://{host}"
        self.is_insecure = self._base.startswith("http:") or session.is_insecure(self._base)

    def get(self, repository: str, kind: str, wanted: str) -> requests.Response:
        """A manifest or a blob of at most LARGEST bytes. Raises HttpError."""
        url = f"{self._base}/v2/{repository}/{kind}/{wanted}"
        headers = {"Accept": documents.ACCEPT} if kind == "manifests" else {}
        headers["Authorization"] = self._headers.get(repository, "")
        try:
            return self._asked(url, headers, repository)
        except HttpError as error:
            if error.status != 401 or not error.url.startswith(f"{self._base}/"):
                raise
            header = self._log_in(repository, error.headers)
            if header in ("", headers["Authorization"]):
                raise
        headers["Authorization"] = self._headers[repository] = header
        return self._asked(url, headers, repository)

    def _asked(self, url: str, headers: Mapping[str, str], repository: str) -> requests.Response:
        try:
            return self._session.get(url, headers=headers, limit=LARGEST)
        except HttpError as error:
            if error.status in (401, 403) and error.url.startswith(f"{self._base}/"):
                error.hint = self._logins.hint(self._name, repository)
            raise

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
        wanted = {"service": challenge.get("service"), "scope": f"repository:{repository}:pull"}
        query = urlencode({k: v for k, v in wanted.items() if v}, quote_via=quote)
        url = f"{realm}{'&' if urlsplit(realm).query else '?'}{query}"
        header = {"Authorization": basic(login.user, login.password) if login else ""}
        try:
            answer = self._session.get(url, headers=header, limit=_LARGEST_TOKEN)
            found = json_text.read(answer.content, _Token)
        except ValueError:
            raise self._no_token(f"{addresses.host(realm)} sends none") from None
        except HttpError as error:
            refused = error.status in (400, 401, 403)
            hint = self._logins.hint(self._name, repository) if refused else error.hint
            raise self._no_token(str(error), hint) from None
        token = found.token or found.access_token or ""
        if not (token.isascii() and token.isprintable() and token):
            raise self._no_token(f"{addresses.host(realm)} sends none")
        return f"Bearer {token}"

    def _realm(self, text: str) -> str:
        """The token server's URL. Raises HttpError for one that must not get credentials."""
        realm = addresses.public(text)
        if not addresses.is_index(realm):
            raise self._no_token("the address of its token server is invalid")
        scheme, host, _ = addresses.origin(realm)
        if scheme == "http" and host != addresses.origin(self._base)[1]:
            raise self._no_token(
                f"its token server, {addresses.shown(realm)}, is another host without TLS",
                "anybody on the way could read the user name and the password",
            )
        return realm

    def _no_token(self, why: str, hint: str = "") -> HttpError:
        return HttpError(f"{self._name} gives no token: {why}", hint)

    def _has_tls(self) -> bool:
        """Always, unless plain http is allowed: for this machine, and for hosts that the user names."""
        if not (addresses.is_loopback(self._base) or self._session.is_insecure(self._base)):
            return True
        try:
            self._session.get(f"{self._base}/v2/", headers={"Authorization": ""}, attempts=1)
        except HttpError as error:
            # TLS with an error status, or with a certificate that cannot be trusted.
            return error.status is not None or not error.again
        return True


class _Token(msgspec.Struct):
    token: str | None = None
    access_token: str | None = None


def _unknown(reference: Reference, wanted: str) -> UsageError:
    kind = "digest" if wanted.startswith("sha256:") else "tag"
    return UsageError(
        f"{reference.registry} has no {kind} {wanted} of {reference.repository}",
        "the name or the tag is mistyped, or it was removed; envcheck releases --mode container lists"
        " NVIDIA's",
    )


def _verify(reference: Reference, what: str, data: bytes, wanted: str) -> None:
    found = documents.digest_of(data)
    if found != wanted:
        raise CouldNotLook(
            f"{reference.registry}: the {what} of {reference} should have the digest {wanted}, and has"
            f" {found}",
            "The registry is broken, or somebody in between changed it. Nothing of it is used.",
        )
