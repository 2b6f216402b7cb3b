"""The line on stderr while envcheck works: on terminals only, one line, and nothing of it left behind."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from envcheck.cli.terminal import Terminal as Told
from envcheck.reports.progress import Progress, StatusLine


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and remembers what it was given."""

    def isatty(self) -> bool:
        return True


class BrokenTerminal(Terminal):
    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        raise BrokenPipeError


@pytest.fixture(autouse=True)
def capable_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")


@pytest.fixture(autouse=True)
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is drawn when it is shown, and by no thread."""
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    monkeypatch.setattr(StatusLine, "_run", lambda self: None)


def screen(written: str) -> str:
    """What a terminal shows of one line after these characters, without the spinner."""
    shown = ""
    for piece in written.split("\r"):
        shown = piece.replace("\x1b[K", "") if piece.startswith("\x1b[K") else shown + piece
    return shown[2:]


def test_one_line_is_rewritten_and_gone_at_the_end() -> None:
    stream = Terminal()
    with Progress(stream) as progress:
        progress.update(["nvml", "host"], 3, 9)
        assert screen(stream.getvalue()) == "3 of 9 done, looking at nvml, host"
        progress.update([], 9, 9)
        assert screen(stream.getvalue()) == "9 of 9 done"
    assert screen(stream.getvalue()) == ""
    assert "\n" not in stream.getvalue() and "\x1b[?25l" not in stream.getvalue()


def test_a_line_never_wraps_and_never_holds_control_characters() -> None:
    stream = Terminal()
    with Progress(stream) as progress:
        progress.update(["a\x1b[31m\n" + "b" * 200], 1, 2)
        line = screen(stream.getvalue())
        assert len(line) <= 57 and r"a\x1b[31m" in line


def test_a_stream_that_is_gone_does_not_stop_the_run() -> None:
    stream: Any = BrokenTerminal()
    with Progress(stream) as progress:
        progress.update(["nvml"], 1, 2)
        progress.update(["host"], 1, 2)
    assert stream.writes == 1
    closed = Terminal()
    closed.close()
    with Progress(closed) as progress:
        progress.update(["nvml"], 1, 2)


def test_control_c_leaves_no_half_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    with pytest.raises(KeyboardInterrupt), Told() as shown:
        shown.say("resolving")
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\r\x1b[Kenvcheck: resolving\n")
    assert "\x1b[?25" not in stream.getvalue()
