"""JSON from registries, archives, engines and helpers: one reader, and one kind of failure."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


def decode(data: bytes, kind: type[T]) -> T:
    """The document as that type. Raises ValueError for anything else: its text is the reason.

    That is bytes that are no UTF-8, halves of surrogate pairs, values of other types, and documents that are
    nested too deeply for a parser.
    """
    try:
        return msgspec.json.decode(data.decode(), type=kind)
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except msgspec.ValidationError as error:
        reason = str(error)[:1].lower() + str(error)[1:]
    except (ValueError, RecursionError):
        reason = "it is not JSON"
    raise ValueError(reason)
