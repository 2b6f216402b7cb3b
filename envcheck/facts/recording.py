"""A Snapshot that records which fields of its documents are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

import msgspec

from .snapshot import Document, Snapshot

FIELDS = frozenset(Document.__struct_fields__)
SECTIONS = FIELDS - {"origin", "location", "collected_at", "collector"}

V = TypeVar("V")
T = TypeVar("T")
_read: set[str] = set()


class RecordedDocument(Document, frozen=True, kw_only=True):
    def __getattribute__(self, name: str) -> Any:
        if name in FIELDS:
            _read.add(name)
        return super().__getattribute__(name)


def read_by(compute: Callable[[], T]) -> tuple[T, set[str]]:
    """What it computes, and the fields of recorded documents that it reads."""
    global _read
    around, _read = _read, set()
    try:
        return compute(), _read
    finally:
        around |= _read
        _read = around


def count_as_read(fields: Iterable[str]) -> None:
    """Where what was computed from these fields is used once more."""
    _read.update(fields)


def once(compute: Callable[[V], T]) -> Callable[[V], T]:
    """A function of a view that is computed once for it: all who ask count as reading what it read."""

    @wraps(compute)
    def of_view(view: Any) -> T:
        found: tuple[T, set[str]] | None = view.computed.get(compute)
        if found is None:
            found = view.computed[compute] = read_by(lambda: compute(view))
        else:
            count_as_read(found[1])
        return found[0]

    return of_view


def recorded(snapshot: Snapshot) -> Snapshot:
    """An equal one, of recorded documents."""
    documents = {name: _recording(getattr(snapshot, name)) for name in ("machine", "target")}
    return msgspec.structs.replace(snapshot, **documents)


def _recording(document: Document | None) -> Document | None:
    return None if document is None else RecordedDocument(**msgspec.structs.asdict(document))
