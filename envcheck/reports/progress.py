"""One line of stderr that says what happens now, and moves while it does; it is gone afterwards.

Not rich's: its import takes longer than many a thing that is waited for here, and it hides the cursor, which
a killed process does not bring back.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from typing import TextIO, TypeVar

from .. import safe_text

_ERASE = "\r\x1b[K"
_EVERY = 0.2  # seconds
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES = "-\\|/"

Line = TypeVar("Line", bound="StatusLine")


class StatusLine:
    """A context manager. On a terminal one line is rewritten five times a second by a thread; anywhere else
    nothing is written. The cursor is never hidden, so that even a killed run leaves a terminal that works.
    A stream that cannot be written to any more costs the line and not the run."""

    def __init__(self, stream: TextIO) -> None:
        self.live = _is_terminal(stream)
        self._stream = stream
        utf8 = (stream.encoding or "").lower().replace("-", "") == "utf8"
        self._frames = _FRAMES if utf8 else _ASCII_FRAMES
        self._text: Callable[[int], str] | None = None
        self._shown = ""
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self: Line) -> Line:
        return self

    def show(self, text: Callable[[int], str]) -> None:
        """Show what ``text`` gives for a number of columns, asked again and again, until ``clear``."""
        with self._lock:
            if not self.live:
                return
            self._text = text
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
            self.draw()

    def draw(self) -> None:
        with self._lock:
            if self._text is None or not self.live:
                return
            columns = self._columns() - 3  # the spinner's, and a last one that stays free
            frame = self._frames[int(time.monotonic() / _EVERY) % len(self._frames)]
            line = f"{frame} {safe_text.one_line(self._text(columns))[:columns]}"
            if line != self._shown:
                self._write(_ERASE + line)
                self._shown = line

    def clear(self) -> None:
        """Take the line away, so that something else can be written; ``show`` brings it back."""
        with self._lock:
            self._text = None
            if self._shown and self.live:
                self._write(_ERASE)
            self._shown = ""

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self.clear()

    def _run(self) -> None:
        while not self._ended.wait(_EVERY):
            self.draw()

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
            self.live = False


class Progress(StatusLine):
    """The same for the collector: which probes run, how many are done, and for how long it has worked."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._since = time.monotonic()

    def update(
        self,
        names_running: Iterable[str],
        done: int,
        total: int,
        doing: Callable[[], str] | None = None,
    ) -> None:
        """``doing``: what is shown in the probes' place, unless it is ""."""
        words = (doing() if doing is not None else "") or looking(names_running, done, total)
        self.show(lambda columns: with_time(words, self._since, columns))


def looking(names_running: Iterable[str], done: int, total: int) -> str:
    """ "3 of 9 done, looking at nvml, L1": the GPUs at one level are one."""
    names = dict.fromkeys(name.replace("_", "-").partition(" GPU ")[0] for name in names_running)
    return f"{done} of {total} done" + (f", looking at {', '.join(names)}" if names else "")


def with_time(text: str, since: float, columns: int, *, detail: str = "") -> str:
    """ "resolving, DETAIL (12 s)" in that many columns: the text is cut, and not what follows it. since: of
    time.monotonic."""
    tail = (f", {detail}" if detail else "") + elapsed(since)
    room = max(columns - len(tail), 8)
    return (text if len(text) <= room else f"{text[: room - 3]}...") + tail


def elapsed(since: float) -> str:
    """ " (12 s)", " (2 min 5 s)"; "" in the first second. since: of time.monotonic."""
    minutes, seconds = divmod(int(time.monotonic() - since), 60)
    if minutes:
        return f" ({minutes} min {seconds} s)"
    return f" ({seconds} s)" if seconds else ""


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    except ValueError:  # closed
        return False
