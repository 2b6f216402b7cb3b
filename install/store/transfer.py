"""A file on its way into the store, as those see it who wait for it."""

from __future__ import annotations

from pathlib import Path

from ..lockfile import LockedFile
from .errors import FetchError
from .store import Store


class Transfer:
    """One file. The Fetcher's threads write it, and everybody may read it; sizes in bytes.

    total: None while it is not known. size: what is there, verified or not. resumed: of these, what an
    earlier run had left. complete: it is in the store, verified. error: why it will not be.
    """

    def __init__(self, file: LockedFile, store: Store) -> None:
        self.file = file
        self.total = file.size
        self.size = 0
        self.resumed = 0
        self.complete = False
        self.error: FetchError | None = None
        self._store = store

    def named(self) -> Path:
        """The complete file under its own name. Raises FetchError."""
        return self._store.named(self.file.sha256, self.file.name)

    def finished(self, size: int) -> None:
        """It is in the store."""
        self.size = self.total = size
        self.complete = True
