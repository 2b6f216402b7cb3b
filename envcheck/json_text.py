"""What envcheck writes as JSON, and reads from others."""

from __future__ import annotations

from typing import Any

import msgspec

from . import safe_text


class NotReadable(ValueError):
    """The text cannot be read as JSON of that type: the end of a sentence about it, "it is …"."""


def read(data: bytes, wanted: Any = Any) -> Any:
    """What JSON text from elsewhere holds. Raises NotReadable, whatever the text is."""
    try:
        return msgspec.json.decode(data, type=wanted)
    except UnicodeDecodeError as error:
        raise NotReadable(f"it is not UTF-8: byte {error.start} of a text cannot be read") from None
    except RecursionError:
        raise NotReadable("it is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise NotReadable(f"it does not fit the schema: {error}") from None
    except ValueError as error:  # DecodeError, and Python's own limit on digits
        raise NotReadable(f"it is not whole JSON: {error}") from None


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
