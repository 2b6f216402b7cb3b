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


def test_piped_a_long_download_is_a_line_a_minute(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stderr(monkeypatch, io.StringIO())
    with Terminal() as shown:
        shown.say("fetching")
        for second in range(0, 100, 5):
            clock.append(100.0 + second)
            shown.progress(fetched(second))
    assert stream.getvalue().splitlines() == [
        "envcheck: fetching",
        "envcheck: fetching: 60 of 100 MiB",
    ]


def test_on_a_terminal_what_is_done_stays_with_its_time(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stderr(monkeypatch, TerminalStream())
    with Terminal() as shown:
        shown.planned(planned())
        shown.step("install")
        shown.progress(fetched(0))
        clock.append(110.0)
        shown.progress(fetched(40))
        shown._line.draw()
        line = stream.getvalue().rpartition("\x1b[K")[2][2:]
        assert line == "step 3 of 6: install 4 packages, 40 of 100 MiB (10 s)"
        clock.append(131.0)
        shown.step("configure")
    whole = stream.getvalue()
    assert "envcheck: step 3 of 6: install 4 packages (31 s)\n" in whole
    assert whole.endswith("envcheck: step 4 of 6: configure it\n")


def test_quiet_is_quiet(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (stderr(monkeypatch, TerminalStream()), stderr(monkeypatch, io.StringIO())):
        with Terminal(quiet=True) as shown:
            shown.planned(planned())
            shown.say("looking")
            shown.step("install")
            clock.append(clock[-1] + 100)
            shown.progress(fetched(40))
        assert stream.getvalue() == ""


def test_control_c_leaves_no_half_line(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stderr(monkeypatch, TerminalStream())
    with pytest.raises(KeyboardInterrupt), Terminal() as shown:
        shown.say("resolving")
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\r\x1b[Kenvcheck: resolving\n")
    assert "\x1b[?25" not in stream.getvalue()
