"""User names and passwords for indexes: from their URLs, the environment, and netrc."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping

import requests.utils

from . import addresses

Pair = tuple[str, str]  # user name, password

_WHERE = (
    "credentials are taken from ~/.netrc (or the file in NETRC), from the index's URL, and from"
    " UV_INDEX_NAME_USERNAME and UV_INDEX_NAME_PASSWORD (NAME is PUBLIC or that of the stack's index)"
)


def basic(user: str, password: str) -> str:
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class Credentials:
    """What to log in with, by origin."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._learned: dict[tuple[str, str, int], Pair] = {}

    def authorization(self, url: str) -> str:
        """The header to send along unasked; "": none."""
        known = self.known(url)
        return basic(*known) if known else ""

    def hint(self, url: str) -> str:
        """What to do about a 401 or a 403."""
        if self.known(url) is not None:
            return f"the credentials for {addresses.host(url)} are wrong or lack the right"
        return _WHERE

    def learn(self, url: str, index: str = "") -> None:
        """What an index's URL holds is good for all files on its host.

        index: its name; UV_INDEX_<NAME>_USERNAME and UV_INDEX_<NAME>_PASSWORD stand in for the URL's.
        """
        pair = addresses.credentials(url)
        if index:
            name = re.sub(r"[^A-Za-z0-9]", "_", index).upper()
            user = self._environ.get(f"UV_INDEX_{name}_USERNAME", "")
            password = self._environ.get(f"UV_INDEX_{name}_PASSWORD", "")
            pair = (user, password) if user or password else pair
        if pair:
            self._learned[addresses.origin(url)] = pair

    def known(self, url: str) -> Pair | None:
        """A user name may stand alone, and then netrc may know the rest."""
        learned = self._learned.get(addresses.origin(url))
        if learned and learned[1]:
            return learned
        found = requests.utils.get_netrc_auth(url)
        if found and (learned is None or found[0] == learned[0]):
            return found[0], found[1]
        return learned
