"""How far an engine is with a pull: by what it writes on the way, or by what it prints."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ...exit_codes import PutBack
from ..registry.image import Image
from ..store import leftovers
from ..store.progress import Fetching

SILENCE = 1800.0  # seconds without a byte or a word; a large layer is unpacked without one
_OFTEN = 0.25  # seconds between looks at the folder
# docker's own lines where stdout is no terminal: "5fd1201c6868: Download complete"
_DONE = re.compile(r"([0-9a-f]{12}): (Download complete|Pull complete|Already exists)")


class PullProgress:
    """Called between looks at an engine that pulls, with what it printed; raises where it hangs."""

    def __init__(
        self, image: Image, engine: str, folder: Path, shown: Callable[[Fetching], None]
    ) -> None:
        """folder: where podman, apptainer and enroot write layers; docker's server has its own."""
        self._sizes = {blob.digest: blob.size for blob in image.layers}
        self._engine = engine
        self._folder = folder
        self._shown = shown
        self._done: set[str] = set()
        self._written = 0
        self._looked = 0.0
        self._moved = time.monotonic()

    def __call__(self, lines: Sequence[str]) -> None:
        """Raises PutBack after too long a silence of an engine whose bytes can be seen here."""
        now = time.monotonic()
        for found in filter(None, (_DONE.match(line.strip()) for line in lines)):
            short = f"sha256:{found[1]}"
            self._done.update(digest for digest in self._sizes if digest.startswith(short))
        if now - self._looked < _OFTEN and not lines:
            return
        self._looked = now
        written = leftovers.size(self._folder)
        if lines or written != self._written:
            self._written, self._moved = written, now
            self._show(max(written, sum(self._sizes[digest] for digest in self._done)))
        if written and now - self._moved > SILENCE:
            raise PutBack(
                f"{self._engine} has neither fetched nor said anything for {SILENCE / 60:.0f} minutes, and"
                " was stopped.",
                f"{self._engine} keeps the layers that are whole: the same command goes on with them",
            )

    def _show(self, done: int) -> None:
        total = sum(self._sizes.values())
        done = min(done, total)
        files = len(self._sizes)
        self._shown(
            Fetching(files=files, files_done=len(self._done), total=total, done=done, fetched=done)
        )
