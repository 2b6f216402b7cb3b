"""Versions as they can be compared."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version


def parse_version(text: str | Version) -> Version | None:
    """A version as one that can be compared (of a driver, too: "535.54.03"); None for other text."""
    if isinstance(text, Version):
        return text
    try:
        return Version(text)
    except InvalidVersion:
        return None
