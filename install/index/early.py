"""Asks for a stack's pages before the resolver does: they come while the machine is still looked at.

The resolver learns what a package needs only when it has the package, so it asks in a chain. What it asked
for last time is known, and mostly what it will ask for this time. An index of the stack's own is left out:
whether it answers is asked where it decides.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from ..catalogue.model import Stack

if TYPE_CHECKING:
    from ..store.store import Store
    from .views import OpenIndex

AT_ONCE = 8
_MOST = 200  # projects; a stack has 50
_EVERY = ("pip",)  # in every environment


def begin(indexes: OpenIndex, store: Store, stack: Stack) -> None:
    """Ask, in threads of its own. An error waits, with the page, for whoever needs that."""
    kept = store.metadata(_memory(stack)) or b""
    names = dict.fromkeys([stack.distribution, *_EVERY, *kept.decode().splitlines()[:_MOST]])
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in filter(indexes.is_public, names):
        waiting.put(name)
    for _ in range(min(AT_ONCE, waiting.qsize())):
        # A daemon: nobody waits for what nobody needs.
        threading.Thread(target=_work, args=(indexes, waiting), daemon=True).start()


def remember(indexes: OpenIndex, store: Store, stack: Stack) -> None:
    """Keep the names of the projects that this run asked for."""
    asked = "\n".join(indexes.wanted).encode()
    if asked != store.metadata(_memory(stack)):
        store.put_metadata(_memory(stack), asked)


def _work(indexes: OpenIndex, waiting: queue.SimpleQueue[str]) -> None:
    with suppress(queue.Empty):
        while True:
            indexes.ask_early(waiting.get_nowait())


def _memory(stack: Stack) -> str:
    """Where the store keeps it: under a name that is no file's sha256."""
    return hashlib.sha256(f"asked for {stack.name}".encode()).hexdigest()
