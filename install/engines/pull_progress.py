"""How far an engine is with a pull: by what it writes during it, or by what it prints."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

from ...exit_codes import PutBack
from .. import leftovers
from ..progress import Meter
from ..registry.image import Image

SILENCE = 1800.0  # seconds without a byte or a line; a large layer is unpacked silently
_INTERVAL = 0.25  # seconds between looks at the folder
# docker's own lines if stdout is no terminal: "5fd1201c6868: Download complete"
_DONE = re.compile(r"([0-9a-f]{12}): (Download complete|Pull complete|Already exists)")


class PullProgress:
    """Called regularly with what the engine printed; raises PutBack if it hangs."""

    def __init__(self, image: Image, engine: str, folder: Path, shown: Meter) -> None:
        """folder: where podman and apptainer write layers; docker's server has its own."""
        self._sizes = {blob.digest: blob.size for blob in image.layers}
        self._engine = engine
        self._folder = folder
        self._shown = shown
        self._done: set[str] = set()
        self._written = 0
        self._looked = 0.0
        self._moved = time.monotonic()

    def __call__(self, lines: Sequence[str]) -> None:
        now = time.monotonic()
        for found in filter(None, (_DONE.match(line.strip()) for line in lines)):
            short = f"sha256:{found[1]}"
            self._done.update(digest for digest in self._sizes if digest.startswith(short))
        if now - self._looked < _INTERVAL and not lines:
            return
        self._looked = now
        written = leftovers.size(self._folder)
        if lines or written != self._written:
            self._written, self._moved = written, now
            self._show(max(written, sum(self._sizes[digest] for digest in self._done)))
        if written and now - self._moved > SILENCE:
            raise PutBack(
                f"{self._engine} was stopped: it fetched and printed nothing for {SILENCE / 60:.0f} minutes.",
                f"run the same command again: {self._engine} keeps the layers that are complete",
            )

    def _show(self, done: int) -> None:
        total = sum(self._sizes.values())
        self._shown(min(done, total), total)
