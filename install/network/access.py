"""Who may send which Authorization header where."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Protocol

from . import addresses

if TYPE_CHECKING:
    import requests


class Access(Protocol):
    """For one request and its redirects. "" is no Authorization header."""

    def authorization(self, url: str) -> str:
        """To send along unasked."""

    def refused(self, url: str, answer: requests.Response, sent: str) -> str:
        """After a 401: to send in a second attempt, "" where there is nothing better. Raises HttpError."""

    def hint(self, url: str) -> str:
        """What to do about a 401 or a 403."""


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class GivenAccess:
    """One header, for one origin alone."""

    def __init__(self, url: str, header: str) -> None:
        self._origin = addresses.origin(url)
        self._header = header

    def authorization(self, url: str) -> str:
        return self._header if addresses.origin(url) == self._origin else ""

    def refused(self, url: str, answer: requests.Response, sent: str) -> str:
        return ""

    def hint(self, url: str) -> str:
        return ""
