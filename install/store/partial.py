"""The file that a download grows in: appended to, hashed on the way, renamed when it is whole.

Its length is the record of how far it came: whatever a killed process had written is still in the kernel's
cache, and is read and hashed again when the next one goes on.
"""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

from .store import PIECE


class Partial:
    """One process's growing file; its lock is the caller's matter. Methods raise OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        self.size = 0  # bytes that are written and hashed
        self._hash = hashlib.sha256()

    def read_again(self) -> None:
        """Hash what an earlier run left."""
        piece = memoryview(bytearray(PIECE))
        while length := os.preadv(self._descriptor, [piece], self.size):
            self._hash.update(piece[:length])
            self.size += length

    def append(self, data: bytes) -> None:
        # The order matters: what is hashed is written.
        written = os.write(self._descriptor, data)
        while written < len(data):
            written += os.write(self._descriptor, data[written:])
        self._hash.update(data)
        self.size += len(data)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def restart(self) -> None:
        """Begin again with nothing."""
        os.ftruncate(self._descriptor, 0)
        self.size = 0
        self._hash = hashlib.sha256()

    def keep(self, path: Path) -> None:
        """It is whole and verified: it gets its name."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path.replace(path)
        os.utime(path)

    def discard(self) -> None:
        """Nothing of it is right."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """What is there stays, unless it is nothing."""
        if not os.fstat(self._descriptor).st_size:
            self.discard()
        os.close(self._descriptor)


def private(shared: Path) -> Path:
    """A file of this process's own, for a file system without locks, where two may fetch the same."""
    host = socket.gethostname().replace("/", "_") or "localhost"
    return shared.with_name(f"{shared.name}.{host}.{os.getpid()}")
