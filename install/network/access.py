"""How a request proves who sends it: what it carries unasked, and what after a 401."""

from __future__ import annotations

import base64
from typing import Protocol

import requests

from . import addresses, errors
from .credentials import Credentials


class Access(Protocol):
    """Of one request and its redirects. "" is no Authorization header."""

    def authorization(self, url: str) -> str:
        """To send along unasked."""

    def refused(self, url: str, answer: requests.Response, sent: str) -> str:
        """After a 401: to send in a second attempt, "" where there is nothing better. Raises HttpError."""

    def hint(self, url: str) -> str:
        """What to do about a 401 or a 403."""


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class IndexAccess:
    """What the user keeps for indexes: in URLs, the environment, netrc, the keyring program."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def authorization(self, url: str) -> str:
        known = self._credentials.known(url)
        return basic(*known) if known else ""

    def refused(self, url: str, answer: requests.Response, sent: str) -> str:
        found = self._credentials.ask_keyring(url)
        return basic(*found) if found else ""

    def hint(self, url: str) -> str:
        return errors.about_credentials(url, known=self._credentials.known(url) is not None)


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
