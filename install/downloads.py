"""Files that envcheck fetches itself, kept by their sha256: for bundles and for pip. uv has its own cache.

A file gets its name after its hash was verified, so that complete files survive a kill.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, wait
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .. import scratch
from ..exit_codes import CouldNotLook, PutBack
from . import places
from .lockfile import LockedFile
from .progress import Meter
from .survey import background

if TYPE_CHECKING:
    from .network.access import Access
    from .network.fetching import Fetcher

_ATTEMPTS = 3  # for one file, each from its beginning
SILENCE = 240.0  # seconds in which _LEAST bytes have to come, whatever trickles
_LEAST = 64 * 1024
_AT_ONCE = 8  # files
_PIECE = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[^./\0][^/\0]{0,250}")


class Downloads:
    """The files below ``places.downloads()``; several processes may use them."""

    def __init__(self, access: Access | None = None) -> None:
        """access: needed to ``fetch``."""
        self.root = places.downloads()
        self._access = access
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._done = 0

    def path(self, file: LockedFile) -> Path:
        """Where the complete file is or will be. Raises PutBack for a name or hash that is none."""
        if not _SHA256.fullmatch(file.sha256) or not _NAME.fullmatch(file.name):
            raise PutBack(f"{file.name[:80]!a} with sha256 {file.sha256[:80]!a} is not a file")
        return self.root / file.sha256 / file.name

    def has(self, file: LockedFile) -> bool:
        try:
            return file.size in (None, self.path(file).stat().st_size)
        except OSError:
            return False

    def fetch(self, files: Iterable[LockedFile], meter: Meter | None = None) -> None:
        """Fetch those that are missing, verified. From the main thread. Raises PutBack."""
        missing = list({file.sha256: file for file in files if not self.has(file)}.values())
        total = sum(file.size or 0 for file in missing)
        whole = total if all(file.size for file in missing) else None
        queue = deque(sorted(missing, key=lambda file: -(file.size or 0)))
        self._stop.clear()
        self._done = before = 0
        since = time.monotonic()
        with scratch.directory() as folder:
            fetcher = self._fetcher(folder) if missing else None
            # In threads that keep no process from ending: a server may hold one for ever.
            waiting = {background(lambda: self._work(fetcher, queue)) for _ in missing[:_AT_ONCE]}
            try:
                while waiting:
                    done, waiting = wait(waiting, 0.2, FIRST_EXCEPTION)
                    for one in done:
                        one.result()
                    if self._done - before >= _LEAST:
                        before, since = self._done, time.monotonic()
                    elif waiting and time.monotonic() - since > SILENCE:
                        raise PutBack(
                            f"the servers of {len(queue) + len(waiting)} files sent nothing in"
                            f" {SILENCE:.0f} seconds",
                            "try again: complete downloads are kept",
                        )
                    if meter is not None:
                        meter(min(self._done, whole or self._done), whole)
            finally:
                self._stop.set()

    def add(self, file: LockedFile, pieces: Iterable[bytes]) -> str:
        """Write a file: its sha256, and only if that is the right one, it is kept.

        Raises OSError, and what reading the pieces raises.
        """
        target, found, size = self.path(file), hashlib.sha256(), 0
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{os.getpid()}")
        try:
            with temporary.open("wb") as written:
                for piece in pieces:
                    size += len(piece)
                    if size > (file.size or size):
                        return f"more than {file.size} bytes"
                    found.update(piece)
                    written.write(piece)
            if found.hexdigest() == file.sha256:
                temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        return found.hexdigest()

    def _fetcher(self, folder: Path) -> Fetcher:
        from .network.fetching import Fetcher

        assert self._access is not None, "only what is there already is read without"
        return Fetcher(self._access, folder)

    def _work(self, fetcher: Fetcher | None, queue: deque[LockedFile]) -> None:
        """Fetch one file after the other, each again where its server cuts it."""
        while queue and fetcher is not None:
            with suppress(IndexError):
                self._fetch(fetcher, queue.popleft())

    def _fetch(self, fetcher: Fetcher, file: LockedFile) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                found = self.add(file, map(self._counted, fetcher.pieces(file.url)))
                break
            except OSError as error:
                raise PutBack(
                    f"{file.name} cannot be written to {self.root}: {error.strerror}",
                    "make room (envcheck prune removes what is not used), or name another place in"
                    " XDG_CACHE_HOME; complete downloads are kept",
                ) from None
            except CouldNotLook as error:
                if attempt == _ATTEMPTS:
                    raise PutBack(
                        f"{file.name} could not be fetched: {error}", error.hint
                    ) from None
        if found != file.sha256:
            raise PutBack(
                f"{file.name} is not the file that was asked for: its sha256 is {found}, and should"
                f" be {file.sha256}",
                "its server changed the file, or somebody in between did",
            )

    def _counted(self, piece: bytes) -> bytes:
        if self._stop.is_set():
            raise PutBack("fetching was stopped; complete downloads are kept")
        with self._lock:
            self._done += len(piece)
        return piece


def read(path: Path) -> Iterator[bytes]:
    """A file in pieces. Raises OSError."""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece
