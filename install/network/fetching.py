"""Fetches files with requests: by this user's proxies, certificates and logins."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import requests
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from . import addresses, troubles, trust
from .access import Access
from .pip_settings import pip_settings

_TIMEOUT = (10.0, 30.0)  # seconds to connect, and without a byte
_LATER = (408, 425, 429, 500, 502, 503, 504)  # may answer better when asked again
_RETRIES = Retry(total=4, backoff_factor=0.5, status_forcelist=_LATER, retry_after_max=60)
_PIECE = 256 * 1024
# ValueError is urllib3's for URLs and headers that are none. None of these gets out: they hold URLs.
_FAILURES = (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError)


class Fetcher:
    """Safe for threads. folder: for a file with all certificates that are trusted."""

    def __init__(self, access: Access, folder: Path) -> None:
        self._access = access
        self._certificates = trust.certificates(folder)
        settings = pip_settings(os.environ)  # pip's proxy goes before the environment's, as for pip
        self._proxy = settings["proxy"].value if "proxy" in settings else ""
        self._session = requests.Session()
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=32, max_retries=_RETRIES))
        self._session.headers.update({"Accept-Encoding": "identity"})

    def pieces(self, url: str) -> Iterator[bytes]:
        """A file's body as it comes. Raises CouldNotLook where it does not come, or breaks off."""
        self._access.permit(url)
        try:
            with self._answer(url) as answer:
                self._access.permit(answer.url, url)
                if answer.status_code >= 300:
                    raise troubles.explained(answer.url, f"status {answer.status_code}")
                if answer.headers.get("Content-Type", "").lower().startswith("text/html"):
                    raise troubles.explained(answer.url, "a web page")
                while piece := answer.raw.read(_PIECE):
                    yield piece
        except _FAILURES as error:
            words = f"{type(error).__name__} {str(error).rpartition('(Caused by ')[2]}"
            raise troubles.explained(url, words) from None

    def _answer(self, url: str) -> requests.Response:
        unverified = self._access.is_insecure(url)
        if unverified:  # asked for by name; no warning at every request
            warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
        return self._session.get(
            addresses.public(url),
            auth=self._access.known(url),
            stream=True,
            timeout=_TIMEOUT,
            verify=False if unverified else self._certificates,
            proxies=self._proxies(url),
        )

    def _proxies(self, url: str) -> dict[str, str] | None:
        """NO_PROXY counts, and this machine's loopback needs none. None: the environment's."""
        if addresses.is_loopback(url):
            return {"http": "", "https": ""}
        if not self._proxy or requests.utils.should_bypass_proxies(url, no_proxy=None):
            return None
        return {"http": self._proxy, "https": self._proxy}
