"""What is on stderr while envcheck works: a line that moves on a terminal, a line a task elsewhere."""

from __future__ import annotations

import io
import sys

import pytest

from envcheck.cli.terminal import Terminal
from envcheck.reports.progress import StatusLine


class TerminalStream(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The last one is now; the line is drawn when it is shown, and by no thread."""
    times = [100.0]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("time.monotonic", lambda: times[-1])
    monkeypatch.setattr(StatusLine, "_run", lambda self: None)
    return times


def stderr(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> io.StringIO:
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_control_c_leaves_no_half_line(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stderr(monkeypatch, TerminalStream())
    with pytest.raises(KeyboardInterrupt), Terminal() as shown:
        shown.say("resolving")
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\r\x1b[Kenvcheck: resolving\n")
    assert "\x1b[?25" not in stream.getvalue()
