"""Container registries: URLs that begin with docker://HOST/v2/, and the tokens that open them.

docker:// leaves open what only the session knows: the host of the registry's API, and whether a registry
on this machine speaks TLS. Tokens last for minutes and downloads for hours, so that one is fetched whenever
the registry asks for it. Source: the token authentication specification of the distribution project.
"""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import msgspec
import requests

from ..network import addresses
from ..network.access import GivenAccess, basic
from ..network.errors import HttpError
from . import challenges, host_certificates
from .challenges import Challenge

if TYPE_CHECKING:
    from ..network.session import Session
    from .logins import Login, Logins

SCHEME = "docker"

# Registries whose API is at another host than their name says. Source: the reference package of the
# distribution project, and https://docs.docker.com/reference/api/registry/
_API_HOSTS = {"docker.io": "registry-1.docker.io"}

_LASTS = 60.0  # seconds, for a token that does not say how long
_EARLY = 5.0  # seconds before its end that a token is not used any more
_LARGEST = 1 << 20  # bytes of an answer with a token


class _Said(msgspec.Struct):
    """What a token server answers."""

    token: str | None = None
    access_token: str | None = None
    expires_in: float | None = None


class _Token:
    __slots__ = ("header", "until")

    def __init__(self, header: str, until: float) -> None:
        self.header = header
        self.until = until


class Registries:
    """Where the registries are, and what they gave. Safe for threads; nothing of it is ever shown."""

    def __init__(self, session: Session, logins: Logins) -> None:
        """From here on the session knows where docker:// leads."""
        self._session = session
        self._logins = logins
        self._bases: dict[str, str] = {}
        self._used: dict[str, Login] = {}
        self._tokens: dict[tuple[str, str], _Token] = {}
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._lock = threading.Lock()
        session.add_scheme(SCHEME, self.located)

    def located(self, url: str) -> tuple[RegistryAccess, str]:
        """Who is let in, and where it is to be had, for a docker:// URL. Raises HttpError."""
        name, parts = addresses.host(url), urlsplit(url)
        found = re.match(r"/v2/(.+?)/(?:manifests|blobs|tags)/", parts.path)
        access = RegistryAccess(self, name, found[1] if found else "", self.base(name))
        return access, access.base + urlunsplit(("", "", parts.path, parts.query, ""))

    def login_used(self, name: str) -> Login | None:
        """What this registry was shown, after it had asked."""
        return self._used.get(name)

    def base(self, name: str) -> str:
        """ "https://registry-1.docker.io" of "docker.io"; http where that is allowed and all it speaks."""
        with self._locked("base", name):
            if name not in self._bases:
                host = _API_HOSTS.get(name, name)
                plain = self._session.is_plain(host)
                self._bases[name] = base = f"{'http' if plain else 'https'}://{host}"
                own = host_certificates.of(tuple(dict.fromkeys((name, host))))
                if own is not None and not plain:
                    self._session.use_certificates(base, own.load)
            return self._bases[name]

    def known(self, access: RegistryAccess) -> str:
        token = self._tokens.get((access.name, access.repository))
        return token.header if token is not None and time.monotonic() < token.until else ""

    def renewed(self, access: RegistryAccess, asked: list[Challenge], sent: str) -> str:
        """Another header than the one that was sent; "" where there is none. Raises HttpError."""
        key = access.name, access.repository
        with self._locked(*key):
            known = self.known(access)
            if known and known != sent:  # another thread was quicker
                return known
            login = self._logins.of(access.name, access.repository)
            if login is not None:
                self._used[access.name] = login
            for challenge in asked:
                token = self._answer(access, challenge, login)
                if token is not None:
                    self._tokens[key] = token
                    return "" if token.header == sent else token.header
            return ""

    def _answer(
        self, access: RegistryAccess, challenge: Challenge, login: Login | None
    ) -> _Token | None:
        """To one challenge; None where there is no way to."""
        if login is not None and login.registry_token and challenge.scheme == "bearer":
            return _Token(f"Bearer {login.registry_token}", float("inf"))
        if challenge.scheme == "basic" and login is not None and login.user:
            return _Token(basic(login.user, login.password), float("inf"))
        if challenge.scheme == "bearer" and challenge.parameters.get("realm"):
            return self._fetched(access, challenge, login)
        return None

    def _fetched(self, access: RegistryAccess, challenge: Challenge, login: Login | None) -> _Token:
        realm = _realm(access, challenge.parameters["realm"])
        # An identity token opens nothing here, and a public image needs none.
        usable = login if login is not None and not login.identity_token else None
        header = basic(usable.user, usable.password) if usable is not None else ""
        started = time.monotonic()
        try:
            question = _question(realm, access, challenge)
            given = GivenAccess(realm, header)
            answer = self._session.get(question, access=given, limit=_LARGEST)
            said = _read(access, answer)
        except HttpError as error:
            raise access.explained(error) from None
        lasts = _LASTS if said.expires_in is None else said.expires_in
        return _Token(f"Bearer {said.token or said.access_token}", started + lasts - _EARLY)

    def hint(self, access: RegistryAccess) -> str:
        return self._logins.hint(access.name, access.repository)

    def _locked(self, *key: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault((key[0], key[1]), threading.Lock())


class RegistryAccess:
    """To one repository of one registry, and nowhere else: what its redirects lead to gets nothing."""

    def __init__(self, registries: Registries, name: str, repository: str, base: str) -> None:
        self.name = name  # "nvcr.io"
        self.repository = repository  # "" for the registry as a whole
        self._registries = registries
        self._base = base

    @property
    def base(self) -> str:
        """ "https://registry-1.docker.io"."""
        return self._base

    def authorization(self, url: str) -> str:
        return self._registries.known(self) if self._covers(url) else ""

    def refused(self, url: str, answer: requests.Response, sent: str) -> str:
        if not self._covers(url):
            return ""
        asked = challenges.parse(answer.headers.get("WWW-Authenticate", ""))
        return self._registries.renewed(self, asked, sent)

    def hint(self, url: str) -> str:
        return self._registries.hint(self)

    def explained(self, error: HttpError) -> HttpError:
        """An error of its token server: what to do is about the registry."""
        said = str(error)
        sentence = said if self.name in said else f"{self.name} gives no token: {said}"
        return HttpError(
            sentence,
            self.hint("") if error.status in (400, 401, 403) else error.hint,
            status=error.status if error.status in (401, 403) else None,
            again=False,  # asking for the token was tried again already
        )

    def _covers(self, url: str) -> bool:
        return addresses.origin(url) == addresses.origin(self._base)


def _realm(access: RegistryAccess, said: str) -> str:
    """The token server's URL. Raises HttpError for one that credentials must not be sent to."""
    realm = addresses.public(said)
    try:
        scheme, host, _ = addresses.origin(realm)
    except ValueError:
        scheme, host = "", ""
    if not host or scheme not in ("http", "https"):
        raise HttpError(f"{access.name} names a token server that is not an address")
    if scheme == "http" and host != addresses.origin(access.base)[1]:
        raise HttpError(
            f"{access.name} sends whoever logs in to {addresses.shown(realm)}, which is plain http of"
            " another host, and that is refused",
            "anybody on the way could read the user name and the password",
        )
    return realm


def _question(realm: str, access: RegistryAccess, challenge: Challenge) -> str:
    asked = {}
    if challenge.parameters.get("service"):
        asked["service"] = challenge.parameters["service"]
    # Never more than to read this one repository, whatever is offered.
    if access.repository:
        asked["scope"] = f"repository:{access.repository}:pull"
    elif challenge.parameters.get("scope"):
        asked["scope"] = challenge.parameters["scope"]
    glue = "&" if urlsplit(realm).query else "?"
    return f"{realm}{glue}{urlencode(asked, quote_via=quote)}" if asked else realm


def _read(access: RegistryAccess, answer: requests.Response) -> _Said:
    try:
        body = answer.content
        if len(body) > _LARGEST:
            raise ValueError
        said = msgspec.json.decode(body, type=_Said)
        token = said.token or said.access_token
        if not token or not token.isascii() or not token.isprintable():
            raise ValueError
    except (msgspec.DecodeError, ValueError):
        host = addresses.host(answer.url)
        raise HttpError(f"{host}, which {access.name} names for it, gives no token") from None
    return said
