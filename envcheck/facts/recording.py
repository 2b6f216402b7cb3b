"""A Snapshot that records which sections of its documents are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from .snapshot import Document, Snapshot

_OF_EVERY_DOCUMENT = frozenset(("origin", "location", "collected_at", "collector"))
SECTIONS = frozenset(Document.__struct_fields__) - _OF_EVERY_DOCUMENT

_recordings: list[set[str]] = []


class _RecordedDocument(Document, frozen=True, kw_only=True):
    def __getattribute__(self, name: str) -> Any:
        if name in SECTIONS:
            for read in _recordings:
                read.add(name)
        return super().__getattribute__(name)


@contextmanager
def recorded(snapshot: Snapshot) -> Iterator[tuple[Snapshot, set[str]]]:
    """An equal Snapshot, and the sections of it that are read until the end of the block."""
    read: set[str] = set()
    documents = {name: _recording(getattr(snapshot, name)) for name in ("machine", "target")}
    _recordings.append(read)
    try:
        yield msgspec.structs.replace(snapshot, **documents), read
    finally:
        _recordings.remove(read)


def _recording(document: Document | None) -> Document | None:
    return None if document is None else _RecordedDocument(**msgspec.structs.asdict(document))
