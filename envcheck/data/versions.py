"""Versions as they can be compared."""

from __future__ import annotations

import re
from functools import lru_cache

from packaging.version import Version


@lru_cache(maxsize=4096)  # drivers, wheels and tables name the same ones again and again
def parse_version(text: str | Version) -> Version | None:
    """A version as one that can be compared (of a driver, too: "535.54.03"); None for other text."""
    if isinstance(text, Version):
        return text
    try:
        return Version(text)
    except ValueError:  # no version, or a number with too many digits to be read
        return None


def release_of(text: str) -> Version | None:
    """The release that a version begins with, whatever a packager appended: "4.9.4-rhel" is 4.9.4."""
    found = re.match(r"[0-9]{1,9}(\.[0-9]{1,9})*", text)
    return Version(found[0]) if found else None
