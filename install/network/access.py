"""Which addresses may be asked, and with what user name and password."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

import requests.utils

from ...exit_codes import CouldNotLook
from . import addresses

Pair = tuple[str, str]  # user name, password


class Access:
    """allow_insecure: host names that may be asked over plain http, or with any certificate."""

    def __init__(
        self, allow_insecure: Collection[str] = (), environ: Mapping[str, str] | None = None
    ) -> None:
        self._insecure = {name.lower() for name in allow_insecure}
        self._environ = os.environ if environ is None else environ
        self._learned: dict[tuple[str, str, int], Pair] = {}

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
        """What to log in with. A user name may stand alone, and then netrc may know the rest."""
        learned = self._learned.get(addresses.origin(url))
        if learned and learned[1]:
            return learned
        found = requests.utils.get_netrc_auth(url)
        if found and (learned is None or found[0] == learned[0]):
            return found[0], found[1]
        return learned

    def is_insecure(self, url: str) -> bool:
        """Whether the user allowed plain http and any certificate for its host."""
        return bool({addresses.host(url), addresses.origin(url)[1]} & self._insecure)

    def permit(self, url: str, asked: str = "") -> None:
        """Raises CouldNotLook for an address that is none of https, this machine's, or allowed by name.

        asked: what redirected to it.
        """
        what = addresses.shown(url)
        if not addresses.is_index(url):
            raise CouldNotLook(f"{what} is not a URL with https://", addresses.QUOTED)
        parts = urlsplit(url)
        if parts.scheme == "https" or self.is_insecure(url):
            return
        if not addresses.is_loopback(url) or urlsplit(asked).scheme == "https":
            if asked not in ("", url):
                what = f"{addresses.host(asked)} redirects to {what}, which"
            raise CouldNotLook(
                f"{what} is plain http, where anybody on the way can change what comes",
                f"use https://, or allow it by name: --allow-insecure {parts.hostname}",
            )
