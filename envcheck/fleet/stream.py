"""Snapshots one after another in a text: `cat *.json`, JSON lines, whatever a script has put together.

The values of a stream are JSON texts, apart by nothing, blanks or line ends; each is a Snapshot, or
{"name": …, "snapshot": …}. What is none costs itself alone: the next value begins at the next line that
begins with a brace. One is read at a time, so that a thousand need no memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from .. import json_text
from ..facts import snapshot as snapshots

# Where a value may end and the next begin; in a string, too, which the decoder then says.
_BETWEEN = re.compile(rb"(?<=\})(?=[ \t\r\n]{0,16}\{)|(?<=\n)(?=\{)")
# What msgspec says of text after a value.
_TRAILING = re.compile(r"trailing characters \(byte ([0-9]{1,12})\)")
_CHUNK = 1 << 20
_JOINED = 64  # pieces of a value: strings with a brace after a brace


class _NamedSnapshot(msgspec.Struct):
    name: str
    snapshot: msgspec.Raw


def named(value: bytes) -> tuple[str, bytes] | None:
    """The machine that a value itself names, and its Snapshot."""
    try:
        found = json_text.read(value, _NamedSnapshot)
    except json_text.NotReadable:
        return None
    return found.name, bytes(found.snapshot)


def values(stream: BinaryIO) -> Iterator[bytes]:
    """The texts of the values; and what is no value, up to where the next may begin."""
    left: list[bytes] = []
    for piece in _pieces(stream):
        left.append(piece)
        yield from _whole(left, False)
    yield from _whole(left, True)


def _whole(left: list[bytes], ended: bool) -> Iterator[bytes]:
    """Take values from the pieces, the last of which has just come."""
    while left:
        text = b"".join(left)
        ends = _end(text)
        if ends:
            yield text[:ends]
            left[:] = [text[ends:]] if text[ends:].strip() else []
            continue
        small = len(left) <= _JOINED and len(text) <= snapshots.LIMIT
        if ends is None and small and not ended:
            return
        yield left.pop(0)


def _end(text: bytes) -> int | None:
    """Where the value ends that the text begins with: 0 where it is none, None where it goes on."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        if "truncated" in str(error):
            return None
        rest = _TRAILING.search(str(error))
        return int(rest[1]) - 1 if rest else 0
    except (ValueError, RecursionError, MemoryError):
        return 0
    return len(text)


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    """The stream, cut wherever a value may end; blanks left out. A piece is at most LIMIT long."""
    buffer = b""
    while chunk := stream.read(_CHUNK):
        # a cut is not seen where its second brace has not come yet
        parts = _BETWEEN.split(buffer + chunk)
        buffer = parts.pop()
        for part in parts:
            if part.strip():
                yield part
        if len(buffer) > snapshots.LIMIT:
            yield buffer
            buffer = b""
    if buffer.strip():
        yield buffer
