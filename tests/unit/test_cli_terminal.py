"""What is on stderr while envcheck works: a line that moves on a terminal, a line a task elsewhere."""

from __future__ import annotations

import io
import sys

import pytest
from planned import planned

from envcheck.cli.terminal import Terminal
from envcheck.reports.progress import StatusLine

MIB = 1 << 20


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


def fetched(done: int) -> str:
    return f"{done} of 100 MiB"


def test_piped_it_is_a_line_a_step(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stderr(monkeypatch, io.StringIO())
    with Terminal() as shown:
        shown.say("looking at this machine")
        shown.planned(planned())
        shown.step("create")
        shown.step("fetch")
        for second in range(20):
            clock.append(101.0 + second)
            shown.progress(fetched(second))
        shown.step("install")
        shown.looking(["nvml"], 1, 9)
    assert stream.getvalue().splitlines() == [
        "envcheck: looking at this machine",
        "envcheck: step 1 of 6: create the environment",
        "envcheck: step 2 of 6: fetch 921 MiB",
        "envcheck: step 3 of 6: install 4 packages",
    ]


def test_control_c_leaves_no_half_line(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stderr(monkeypatch, TerminalStream())
    with pytest.raises(KeyboardInterrupt), Terminal() as shown:
        shown.say("resolving")
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\r\x1b[Kenvcheck: resolving\n")
    assert "\x1b[?25" not in stream.getvalue()
