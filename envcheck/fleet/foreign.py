"""What machines, their ssh and their files answer: the one place where a fleet parses it.

Whatever the bytes are, the outcome is a value of the type that was asked for, or UnreadableAnswer with one
short sentence. So what one machine answers can never end what is done with the others.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from .. import safe_text
from ..facts import snapshot as snapshots
from ..facts.snapshot import Snapshot

T = TypeVar("T")

_LONGEST = 300  # characters of a reason


class UnreadableAnswer(ValueError):
    """What came cannot be read: one sentence without the machine's name."""


def decoded(data: bytes, kind: type[T]) -> T:
    """JSON as this type. Raises UnreadableAnswer."""
    try:
        return msgspec.json.decode(data, type=kind)
    except Exception as error:  # noqa: BLE001 - the bytes are anything, so is what they do to a parser
        raise _unreadable(error) from None


def typed(value: Any, kind: type[T]) -> T:
    """What was already parsed (the free part of an event) as this type. Raises UnreadableAnswer."""
    try:
        return msgspec.convert(value, type=kind)
    except Exception as error:  # noqa: BLE001
        raise _unreadable(error) from None


def snapshot(data: bytes) -> Snapshot:
    """A Snapshot. Raises UnreadableAnswer."""
    try:
        return snapshots.load(data)
    except Exception as error:  # noqa: BLE001
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> UnreadableAnswer:
    if isinstance(error, RecursionError):
        return UnreadableAnswer("it is nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return UnreadableAnswer(f"it is not UTF-8: byte {error.start} cannot be read")
    if isinstance(error, MemoryError):
        return UnreadableAnswer("it needs more memory than there is")
    return UnreadableAnswer(safe_text.one_line(str(error))[:_LONGEST] or type(error).__name__)
