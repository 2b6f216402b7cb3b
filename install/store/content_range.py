"""Which part of a file an answer holds (RFC 9110, section 14)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import requests

from ..network import addresses
from ..network.answers import content_length
from ..network.errors import HttpError

_CONTENT_RANGE = re.compile(r"\s*bytes\s+(?:([0-9]{1,18})-([0-9]{1,18})|\*)/([0-9]{1,18}|\*)\s*")


def place(response: requests.Response, have: int) -> tuple[int, int | None]:
    """How many bytes of the body to skip when ``have`` bytes are there already, and the file's size.

    A server that ignores ranges sends all of it. Raises HttpError for a part that leaves a gap.
    """
    if response.status_code == 206:
        found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        start = int(found[1]) if found and found[1] else have + 1
        if start <= have:
            return have - start, size_of_all(response.headers)
    elif response.status_code == 200:
        return have, content_length(response.headers)
    host = addresses.host(response.url)
    raise HttpError(f"{host} sends another part of the file than it was asked for", again=True)


def size_of_all(headers: Mapping[str, str]) -> int | None:
    """The whole file's size by Content-Range; None where it is not said."""
    found = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
    return int(found[3]) if found and found[3] != "*" else None
