"""A file on its way into the store, as those see it who read along while it grows."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import BinaryIO

from ..lockfile import LockedFile
from .errors import FetchError
from .store import Store

HELD_BACK = 64 * 1024  # bytes at the end that nobody reads before the hash is verified
MOMENT = 0.05  # seconds between looks at a file that has just lost its name


class Transfer:
    """One file. Readers wait on a condition; the download's thread wakes them.

    total: the file's size in bytes, None while it is not known.
    """

    def __init__(self, file: LockedFile, store: Store) -> None:
        self.file = file
        self.total = file.size
        self.offset = 0  # where it begins in what ``open`` gives: a part of an archive begins later
        self._store = store
        self._changed = threading.Condition()
        self._path: Path | None = None  # of the growing file, once it is there
        self._size = 0
        self._complete = False
        self._error: FetchError | None = None
        self._read = False

    @property
    def complete(self) -> bool:
        """Whether the file is in the store, verified."""
        return self._complete

    @property
    def error(self) -> FetchError | None:
        return self._error

    @property
    def size(self) -> int:
        """Bytes that are there, verified or not."""
        return self._size

    def available(self) -> int:
        """Bytes from the beginning that may be read."""
        return self._size if self._complete else max(0, self._size - HELD_BACK)

    def wait_beyond(self, offset: int, timeout: float) -> int:
        """Wait until more than ``offset`` bytes may be read, the file is complete, or the time is over.

        timeout: seconds. Returns ``available()``. Raises FetchError where the rest will not come.
        """
        until = time.monotonic() + timeout
        with self._changed:
            while self.available() <= offset and not self._complete:
                if self._error is not None:
                    raise self._error
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            return self.available()

    def open(self) -> BinaryIO:
        """Open the growing file, or the complete one; waits until it has been begun.

        What is open stays readable when the file gets its name in the store. Raises FetchError.
        """
        while True:
            with self._changed:
                self._read = True
                while self._path is None and not self._complete:
                    if self._error is not None:
                        raise self._error
                    self._changed.wait()
                path = None if self._complete else self._path
            if path is None or self._store.path(self.file.sha256).exists():
                return self._store.open(self.file.sha256)
            try:
                return path.open("rb")
            except FileNotFoundError:
                self._between_names()
            except OSError as error:
                raise FetchError(f"{path} cannot be read: {error.strerror}") from None

    def _between_names(self) -> None:
        """The growing file has gone: renamed, given up or begun again, as its thread is about to say."""
        with self._changed:
            if not self._complete and self._error is None:
                self._changed.wait(MOMENT)
            if self._error is not None:
                raise self._error

    def named(self) -> Path:
        """The complete file under its own name. Raises FetchError."""
        return self._store.named(self.file.sha256, self.file.name)

    # The rest is for those who write.

    def begun(self, path: Path, size: int) -> None:
        """The growing file is there, with what an earlier run left."""
        with self._changed:
            self._path, self._size = path, size
            self._changed.notify_all()

    def learn_total(self, total: int) -> None:
        with self._changed:
            self.total = total
            self._changed.notify_all()

    def grown(self, size: int) -> None:
        with self._changed:
            self._size = size
            self._changed.notify_all()

    def restarted(self) -> bool:
        """What was there is wrong, and it begins again; False where somebody has read of it already."""
        with self._changed:
            if self._read:
                return False
            self._size = 0
            return True

    def finished(self, size: int) -> None:
        """The file is in the store."""
        with self._changed:
            self._size = self.total = size
            self._complete = True
            self._changed.notify_all()

    def failed(self, error: FetchError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()
