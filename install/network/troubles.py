"""What went wrong over HTTP, in one sentence without credentials: of uv's words, and of requests' errors."""

from __future__ import annotations

import re

import msgspec

from ...data import rows
from ...exit_codes import CouldNotLook
from . import addresses


class Trouble(msgspec.Struct, frozen=True):
    """A row of network_troubles.csv: the first whose pattern is found counts."""

    pattern: re.Pattern[str]
    why: str
    hint: str


def explained(url: str, words: str) -> CouldNotLook:
    """What kept a URL from being fetched. words: a tool's, which are not shown."""
    host, words = addresses.host(url), re.sub(r"https?://\S+", "", words)
    names = {"host": host, "name": host.partition(":")[0]}
    for row in rows("network_troubles", Trouble):
        if found := row.pattern.search(words):
            why = row.why.format(**names, match=found[0])
            return CouldNotLook(f"{why}: {addresses.shown(url)}", row.hint.format(**names))
    return CouldNotLook(f"{addresses.shown(url)} cannot be fetched")
