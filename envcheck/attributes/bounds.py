"""Whether a value is what a profile wants: equal, one of several, or within bounds."""

from __future__ import annotations

import re

from ..facts.profile import Value
from .registry import Kind

_BOUND = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*([^<>=!,\s][^<>=!,]{0,80})")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,6})?")
_NUMBERS = re.compile(r"[\d.\-+_~]{1,120}")
_NEAR = 0.01  # of a number that a device measures


def fits(wanted: Value, value: bool | float | str, kind: Kind) -> bool:
    """A list wants any of its items; text with an operator wants what is within the bounds."""
    if isinstance(wanted, list):
        return any(fits(item, value, kind) for item in wanted)
    if isinstance(wanted, bool) or isinstance(value, bool):
        return wanted is value
    if isinstance(wanted, str) and kind in ("number", "version"):
        limits = bounds(wanted)
        if limits:
            have = _comparable(value, kind)
            return all(_within(have, sign, _comparable(limit, kind)) for sign, limit in limits)
        if kind == "version" and not _NUMBERS.fullmatch(wanted.strip()):
            return _begins_with(str(value).strip().lower(), wanted.strip().lower())
        if kind == "version":
            least = _comparable(wanted, kind)
            return _comparable(value, kind)[: len(least)] == least
    if isinstance(wanted, (int, float)) and isinstance(value, (int, float)):
        return abs(wanted - value) <= _NEAR * (isinstance(value, float) and abs(wanted))
    return str(wanted).strip().lower() == str(value).strip().lower()


def _begins_with(value: str, wanted: str) -> bool:
    """ "2.4.0+cu121" is itself alone; "6.8.0-45-generic" is no "6.8.0-45-lowlatency"."""
    rest = value[len(wanted) :]
    return value.startswith(wanted) and not rest[:1].isalnum()


def bounds(text: str) -> list[tuple[str, str]]:
    """ ">= 570, < 580" as its parts; [] of text that is no bounds."""
    parts = [_BOUND.fullmatch(part) for part in text.split(",")]
    return [(part[1], part[2].strip()) for part in parts if part] if all(parts) else []


def mistake(wanted: Value, kind: Kind) -> str:
    """What is wrong with a wanted value of this kind: the end of a sentence; "" where nothing is."""
    if isinstance(wanted, list):
        if not wanted:
            return "the list is empty"
        return next((wrong for item in wanted if (wrong := mistake(item, kind))), "")
    if kind == "switch":
        return "" if isinstance(wanted, bool) else "it must be true or false"
    if kind == "number":
        if isinstance(wanted, bool) or not isinstance(wanted, (int, float, str)):
            return "it must be a number"
        limits = bounds(wanted) if isinstance(wanted, str) else [("", str(wanted))]
        if limits and all(_NUMBER.fullmatch(limit) for _sign, limit in limits):
            return ""
        return 'it must be a number, or bounds in quotes such as ">= 8"'
    text = isinstance(wanted, str) and bool(wanted.strip())
    if kind == "text":
        return "" if text else "it must be text in quotes"
    limits = bounds(wanted) or [("", wanted)] if isinstance(wanted, str) else []
    if limits and all(_comparable(limit, kind) for _sign, limit in limits):
        return ""
    return 'it must be a version in quotes such as "570", or bounds such as ">= 570, < 580"'


def _comparable(value: object, kind: Kind) -> tuple[float, ...]:
    """A number, or the numbers that a version begins with: "6.8.0-45-generic" is 6, 8, 0, 45."""
    if kind == "number":
        found = _NUMBER.fullmatch(str(value).strip())
        return (float(found[0]),) if found else ()
    numbers: list[float] = []
    for part in re.split(r"[.\-+_~]", str(value).strip())[:8]:
        digits = re.match(r"\d{1,9}", part)
        if digits is None:
            break
        numbers.append(int(digits[0]))
        if digits[0] != part:
            break
    return tuple(numbers)


def _within(have: tuple[float, ...], sign: str, limit: tuple[float, ...]) -> bool:
    """Versions are compared as far as the limit goes: 570.86 is "<= 570"."""
    if not have:
        return False
    have = (have + (0,) * len(limit))[: len(limit)] if sign in ("<=", "==", "!=", ">") else have
    return {
        ">=": have >= limit,
        "<=": have <= limit,
        "==": have == limit,
        "!=": have != limit,
        ">": have > limit,
        "<": have < limit,
    }[sign]
