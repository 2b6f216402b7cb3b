"""What a URL says about itself: its origin, whether it is this machine, and its form for messages."""

from __future__ import annotations

import ipaddress
from urllib.parse import unquote, urlsplit, urlunsplit

_PORTS = {"http": 80, "https": 443}


def public(url: str) -> str:
    """The URL without its user name and password; a broken one up to its host, which may hold them."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("://")[0] + "://…"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def shown(url: str) -> str:
    """The URL for a message: a signed address has its secret in the query, so that is left out too."""
    plain = public(url)
    return plain if plain.endswith("://…") else plain.partition("#")[0].partition("?")[0]


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port, with the scheme's own port where none is named. ValueError: a broken one."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)


def host(url: str) -> str:
    """The host, with the port where one is named: "index.example:8443"."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()


def credentials(url: str) -> tuple[str, str] | None:
    """User name and password of a URL, decoded."""
    parts = urlsplit(url)
    if parts.username is None:
        return None
    return unquote(parts.username), unquote(parts.password or "")


def is_loopback(url: str) -> bool:
    """Whether the URL is on this machine, where nobody in between can read along."""
    name = (urlsplit(url).hostname or "").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
