"""What envcheck writes as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from . import safe_text


def render(value: object) -> str:
    """JSON text: in the structs' own order, indented by two, a newline at the end; safe on a terminal.

    Halves of surrogate pairs (of a file name that is not UTF-8), which JSON has no place for, become
    their escapes.
    """
    return safe_text.json_text(msgspec.json.format(_encoded(value), indent=2).decode()) + "\n"


def line(value: object) -> str:
    """The same on one line."""
    return safe_text.json_text(_encoded(value).decode()) + "\n"


def _encoded(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(msgspec.to_builtins(value)))


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value
