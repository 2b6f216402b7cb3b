"""What is being looked at, on one line of stderr that is gone when the looking is done."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from types import TracebackType
from typing import TextIO

from .. import safe_text

_ERASE = "\r\x1b[K"

# Seconds after which a reader starts to wonder.
_LONG = 3


class Progress:
    """A context manager. On a terminal it rewrites one line; anywhere else it writes nothing.

    The cursor is never hidden, so that even a killed run leaves a terminal that works. A stream
    that cannot be written to any more costs the progress and not the run.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = ""
        self._names: list[str] = []
        self._since = 0.0
        self._live = _is_terminal(stream)

    def __enter__(self) -> Progress:
        return self

    def update(self, names_running: Iterable[str], done: int, total: int) -> None:
        """Show which probes run, how many of all are done, and for how long that has not changed."""
        if not self._live:
            return
        names = _together(name.replace("_", "-") for name in names_running)
        if names != self._names:
            self._names, self._since = names, time.monotonic()
        seconds = int(time.monotonic() - self._since)
        text = f"envcheck: {done} of {total} done"
        if names:
            text += f", looking at {', '.join(names)}" + (f" for {seconds} s" * (seconds >= _LONG))
        text = safe_text.one_line(text)[: self._columns() - 1]
        if text != self._shown:
            self._write(_ERASE + text)
            self._shown = text

    def clear(self) -> None:
        """Take the line away, so that something else can be written; updates bring it back."""
        if self._shown and self._live:
            self._write(_ERASE)
            self._shown = ""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()

    def _columns(self) -> int:
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return columns if columns > 1 else shutil.get_terminal_size().columns

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # gone, closed, or of an encoding without these characters
            self._live = False


def _together(names: Iterable[str]) -> list[str]:
    """Several GPUs at one level as one: "L1 GPU 0" and "L1 GPU 1" are "L1 GPU 0+1"."""
    shown: dict[str, str] = {}
    for name in names:
        what, gpu, number = name.rpartition(" GPU ")
        key = what + gpu if gpu else name
        shown[key] = f"{shown[key]}+{number}" if key in shown and gpu else name
    return list(shown.values())


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    except ValueError:  # closed
        return False
