"""Types of options: numbers, seconds, and durations as people write them ("30m", "1h30m", "2d")."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([smhd])", re.ASCII)


def number(least: int, most: int) -> Callable[[str], int]:
    """The type of an option that takes a whole number."""

    def converted(text: str) -> int:
        plain = text.isascii() and text.isdecimal() and len(text) < 10
        if not plain or not least <= int(text) <= most:
            words = f"{text[:20]!r} is not a number from {least} to {most:,}"
            raise argparse.ArgumentTypeError(words)
        return int(text)

    return converted


def seconds(least: float, most: float) -> Callable[[str], float]:
    """The type of an option that takes a number of seconds."""

    def converted(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not least <= value <= most:
            words = f"{text!r} is not a number of seconds from {least:g} to {most:g}"
            raise argparse.ArgumentTypeError(words)
        return value

    return converted


def duration(least: str, most: str) -> Callable[[str], float]:
    """The type of an option that takes a duration between two others; in seconds."""

    def converted(text: str) -> float:
        found = seconds_of(text)
        if found is None:
            words = f"{text!r} is not a duration: write 90s, 30m, 12h, 2d or 1h30m"
            raise argparse.ArgumentTypeError(words)
        if not (seconds_of(least) or 0) <= found <= (seconds_of(most) or 0):
            raise argparse.ArgumentTypeError(f"{text!r} is not between {least} and {most}")
        return found

    return converted


def seconds_of(text: str) -> float | None:
    """None where it is no duration. Each unit once, the longest first."""
    rest, total, before = text.strip().lower().replace(" ", ""), 0.0, float("inf")
    if not rest:
        return None
    while rest:
        found = _PART.match(rest)
        if found is None or _UNITS[found[2]] >= before:
            return None
        before = _UNITS[found[2]]
        total += float(found[1]) * before
        rest = rest[found.end() :]
    return total
