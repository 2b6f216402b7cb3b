"""URLs: their origin, whether they are this machine, and their form for messages."""

from __future__ import annotations

import ipaddress
from urllib.parse import unquote, urlsplit, urlunsplit

# What is mostly wrong with an index's URL that cannot be taken apart.
QUOTED = "in a password, / is written as %2F, ? as %3F, # as %23, @ as %40, and [ as %5B"

_PORTS = {"http": 80, "https": 443}


def public(url: str) -> str:
    """The URL without its user name and password; of a broken one the scheme alone, for a password with a
    "/" in it stands where the port and the path are looked for."""
    if not is_whole(url):
        return url.partition("://")[0] + "://…" if "://" in url else "…"
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def shown(url: str) -> str:
    """The URL for a message: a signed address has its secret in the query, so that is left out too."""
    plain = public(url)
    return plain if plain.endswith("://…") else plain.partition("#")[0].partition("?")[0]


def is_one_word(url: str) -> bool:
    """Whether it holds nothing that ends a line, a word or a setting where it is written down."""
    return url.isprintable() and " " not in url


def is_whole(url: str) -> bool:
    """Whether it can be taken apart: a host in brackets is an address, a port is a number."""
    try:
        _ = urlsplit(url).port
    except ValueError:
        return False
    return True


def is_index(url: str) -> bool:
    """Whether an index could be there: https:// or http://, and a host."""
    return (
        is_whole(url) and urlsplit(url).scheme in ("https", "http") and bool(urlsplit(url).hostname)
    )


def typed(text: str) -> str:
    """What somebody wrote in a URL's place, for a message: nothing that an "@" could part from a host."""
    lead, separator, rest = text.rpartition("@")
    if not separator:
        return text if is_whole(text) else public(text)
    scheme, slashes, _ = lead.partition("://")
    return f"{scheme}{slashes}{rest}" if slashes else f"…{rest}"


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
    """Whether the URL is on this machine, where no network is in between."""
    name = (urlsplit(url).hostname or "").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
