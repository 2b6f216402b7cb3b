"""What envcheck writes as JSON, and reads from others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

from . import safe_text


class NotReadable(ValueError):
    """The text cannot be read as JSON of that type: the end of a sentence about it, "it is …"."""


_LONGEST = 300  # characters of a reason

T = TypeVar("T")


@overload
def read(data: bytes) -> Any: ...


@overload
def read(data: bytes, wanted: type[T]) -> T: ...


def read(data: bytes, wanted: Any = Any) -> Any:
    """What JSON text from elsewhere holds, as this type. Raises NotReadable, whatever the text is."""
    return _read(lambda: msgspec.json.decode(data, type=wanted))


def read_utf8(data: bytes, wanted: type[T]) -> T:
    """The same of bytes that are UTF-8 throughout, also in what the type leaves out."""
    return _read(lambda: msgspec.json.decode(data.decode(), type=wanted))


def convert(value: Any, wanted: type[T]) -> T:
    """A value that was parsed already, as this type. Raises NotReadable."""
    return _read(lambda: msgspec.convert(value, type=wanted))


def _read(decode: Callable[[], T]) -> T:
    try:
        return decode()
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8: byte {error.start} cannot be read"
    except RecursionError:
        reason = "it is nested too deeply"
    except MemoryError:
        reason = "it needs more memory than there is"
    except msgspec.ValidationError as error:
        reason = f"it does not fit the schema: {error}"
    except Exception as error:  # noqa: BLE001 - the bytes are anything, so is what they do to a parser
        reason = f"it is not valid JSON: {str(error).removeprefix('JSON is malformed: ')}"
    raise NotReadable(safe_text.one_line(reason)[:_LONGEST])


def render(value: object) -> str:
    """JSON text: in the structs' own order, indented by two, a newline at the end; safe on a terminal."""
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
