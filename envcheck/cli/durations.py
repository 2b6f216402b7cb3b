"""How long something is to take, as people write it: "30m", "1h30m", "2d"."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([smhd])", re.ASCII)


def duration(least: str, most: str) -> Callable[[str], float]:
    """The type of an option that takes a duration between two others; in seconds."""

    def converted(text: str) -> float:
        seconds = seconds_of(text)
        if seconds is None:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a duration: write 90s, 30m, 12h, 2d or 1h30m"
            )
        if seconds < _known(least):
            raise argparse.ArgumentTypeError(f"{text!r} is too short: {least} is the least")
        if seconds > _known(most):
            raise argparse.ArgumentTypeError(f"{text!r} is too long: {most} is the most")
        return seconds

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


def _known(text: str) -> float:
    seconds = seconds_of(text)
    assert seconds is not None
    return seconds
