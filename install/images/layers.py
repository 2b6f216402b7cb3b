"""Layers in the store: who needs them, so that nobody removes what another installation is about to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from ..store import locking
from ..store.store import Store

_NAME = "layers"

Remove = Callable[[Iterable[str]], None]


@contextmanager
def in_use(store: Store) -> Iterator[Remove]:
    """While this lasts, nobody else removes a layer.

    Gives what removes layers (by sha256) that are needed no more: an image in an engine's storage, or in a
    bundle, is there twice otherwise. Where another envcheck is at work with layers, they stay; `envcheck
    prune` removes them. Where the store cannot be locked, they go.
    """
    lock: locking.SharedLock | None = None
    with suppress(
        OSError, locking.NoLocks
    ):  # whoever writes to the store says what is wrong with it
        path = store.root / "locks" / _NAME
        store.make_room_for(path)
        lock = locking.share(path)

    def remove(layers: Iterable[str]) -> None:
        if lock is None or lock.alone():
            for sha256 in layers:
                store.remove(sha256)

    try:
        yield remove
    finally:
        if lock is not None:
            lock.release()
