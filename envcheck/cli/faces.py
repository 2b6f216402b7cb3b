"""What somebody sees while envcheck works: sentences, and a line that shows how far it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from . import words

if TYPE_CHECKING:
    from ..install.store.progress import Fetching
    from ..install.store.progress import Progress as FetchProgress
    from ..reports.progress import Progress


class Faces:
    """All of it goes to stderr."""

    def __init__(self) -> None:
        self._fetching: FetchProgress | None = None
        self._looking: Progress | None = None

    def say(self, sentence: str) -> None:
        self.clear()
        words.say(sentence)

    def fetching(self, state: Fetching) -> None:
        if self._fetching is None:
            from ..install.store.progress import Progress as FetchProgress

            self._fetching = FetchProgress(sys.stderr)
        if state.files_done < state.files:
            self._fetching(state)
        else:
            self._fetching.clear()

    def looking(self, running: list[str], done: int, total: int) -> None:
        if self._looking is None:
            from ..reports.progress import Progress

            self._looking = Progress(sys.stderr)
        self._looking.update(running, done, total)

    def clear(self) -> None:
        """Take away the line that shows progress, so that something can be written."""
        for line in (self._fetching, self._looking):
            if line is not None:
                line.clear()
