"""User names and passwords for indexes: from their URLs, the environment, netrc, and the keyring program."""

from __future__ import annotations

import base64
import importlib.util
import os
import re
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import requests.utils

from .. import processes
from . import addresses

Pair = tuple[str, str]  # user name, password

_KEYRING_SECONDS = 15.0  # to answer: it may have to start a desktop's service first

_WHERE = (
    "credentials are taken from ~/.netrc (or the file in NETRC), from the keyring program, from the"
    " index's URL, and from UV_INDEX_NAME_USERNAME and UV_INDEX_NAME_PASSWORD (NAME is PUBLIC or that of"
    " the stack's index)"
)


def basic(user: str, password: str) -> str:
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class Credentials:
    """What to log in with, origin by origin. Safe for threads; nothing of it is ever shown."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._learned: dict[tuple[str, str, int], Pair] = {}
        self._keyring: dict[tuple[str, str, int], Pair | None] = {}
        self._lock = threading.Lock()

    def authorization(self, url: str) -> str:
        """The header to send along unasked; "": none."""
        known = self.known(url)
        return basic(*known) if known else ""

    def refused(self, url: str, answer: requests.Response, sent: str) -> str:
        """After a 401: the header for a second attempt; "" where there is nothing better."""
        found = self.ask_keyring(url)
        return basic(*found) if found else ""

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
        """What to send along unasked: a user name may stand alone, and then netrc may know the rest."""
        learned = self._learned.get(addresses.origin(url))
        if learned and learned[1]:
            return learned
        found = requests.utils.get_netrc_auth(url)
        if found and (learned is None or found[0] == learned[0]):
            return found[0], found[1]
        return learned

    def ask_keyring(self, url: str) -> Pair | None:
        """What the keyring program knows; asked once for a host, and never so that it could ask back."""
        where = addresses.origin(url)
        with self._lock:
            if where not in self._keyring:
                learned = self._learned.get(where)
                found = _keyring(addresses.shown(url), learned[0] if learned else "")
                self._keyring[where] = found
                if found:
                    self._learned[where] = found
            return self._keyring[where]


def _keyring(url: str, user: str) -> Pair | None:
    """By the whole URL first, then by the host, as pip asks for it."""
    program = _program()
    question = ["get"] if user else ["--mode", "creds", "get"]
    for service in (url, addresses.host(url)) if program else ():
        said = _ask([*program, *question, service, *([user] if user else [])])
        if user and said:
            return user, said[0]
        if len(said) == 2:
            return said[0], said[1]
    return None


def _program() -> list[str]:
    if importlib.util.find_spec("keyring") is not None:
        return [sys.executable, "-m", "keyring"]
    found = shutil.which("keyring")
    return [os.path.abspath(found)] if found else []  # noqa: PTH100 - as it was found, not where it leads


def _ask(argv: list[str]) -> list[str]:
    """Its lines; none where it knows nothing or fails. It has no terminal, so it cannot ask anybody.

    The thread that starts it waits for it, and so outlives it, which is what tying it to us asks for.
    """
    # From the root: `python -m` would run a keyring.py of the current directory.
    result = processes.run(argv, deadline=_KEYRING_SECONDS, env=dict(os.environ), cwd=Path("/"))
    text: str = result.stdout.decode("utf-8", "replace") if result.ok else ""
    return [line for line in text.splitlines() if line]
