"""What is started on a machine ends by itself: at its time limit, and when whoever asked is gone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest
from processes import PATIENCE, begun, running_commands, wait_for

from envcheck.fleet.engines import Asked, relay

COOKIE = "c00c1e"
SHELLS = {
    "dash": ["dash"],
    "bash": ["bash"],
    "bash as sh": ["bash", "--posix"],
    "busybox": ["busybox", "sh"],
}


@pytest.fixture(params=SHELLS)
def sh(request: pytest.FixtureRequest) -> list[str]:
    found: list[str] = SHELLS[request.param]
    if shutil.which(found[0]) is None:
        pytest.skip(f"there is no {found[0]} on this machine")
    return found


@pytest.fixture
def hung(tmp_path: Path) -> Path:
    """A Python that hangs, with a child that heeds no SIGTERM and one in a session of its own."""
    python = tmp_path / "python3"
    sleep = f"sleep 7{os.getpid()}"
    python.write_text(
        f"#!/bin/sh\nsetsid {sleep} &\n(trap '' TERM; while :; do {sleep}; done) &\n{sleep}\n"
    )
    python.chmod(0o755)
    return python


def sleeps() -> list[bytes]:
    return running_commands(f"sleep\0007{os.getpid()}")


def start(
    sh: list[str], python: Path | str, deadline: float, script: bytes = b""
) -> subprocess.Popen[bytes]:
    line = relay.shell(quote(str(python)), Asked([], deadline), COOKIE, 1 << 20)
    process = begun([*sh, "-c", line], stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    process.stdin.write(script)
    process.stdin.close()
    process.stdin = None
    return process


def test_a_hung_python_is_ended_with_all_its_children_and_that_is_told(
    sh: list[str], hung: Path
) -> None:
    process = start(sh, hung, -1.0)  # a second
    out, err = process.communicate(timeout=PATIENCE)
    assert relay.read(out, COOKIE, 60.0) == relay.late(60.0)
    assert not err.strip() and not sleeps() and process.returncode == 0


def test_a_hung_python_is_ended_when_nobody_listens_any_more(sh: list[str], hung: Path) -> None:
    process = start(sh, hung, 3600.0)
    assert wait_for(sleeps)
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()
    assert wait_for(lambda: not sleeps())
    assert process.wait(timeout=PATIENCE) == 0


def test_an_answer_comes_as_before_and_does_not_wait_for_the_limit(sh: list[str]) -> None:
    behind = f"import subprocess\nsubprocess.Popen(['sleep', '7{os.getpid()}'], start_new_session=True)\n"
    script = f"{behind}print('{{}}', flush=True)\n"
    process = start(sh, sys.executable, 10 * PATIENCE, script.encode())
    out, err = process.communicate(timeout=PATIENCE)
    assert relay.read(out, COOKIE, 60.0) == b"{}\n"
    assert not err.strip() and wait_for(lambda: not sleeps())
    missing, _ = start(sh, "/no/such/python", 3600.0).communicate(timeout=PATIENCE)
    assert relay.read(missing, COOKIE, 60.0) == ("failed", "there is no python3")


@pytest.mark.parametrize(
    ("size", "deadline", "found"),
    [(3000, -1.0, relay.late(60.0)), (1 << 21, 3600.0, relay.FLOODED)],
)
def test_too_slow_or_too_long_an_answer_is_ended(
    sh: list[str], size: int, deadline: float, found: tuple[str, str]
) -> None:
    script = f"import time\nprint('x' * {size}, flush=True)\ntime.sleep(3600)\n"
    process = start(sh, sys.executable, deadline, script.encode())
    out, _ = process.communicate(timeout=PATIENCE)
    assert relay.read(out, COOKIE, 60.0, limit=1 << 20) == found


def test_what_a_script_left_in_another_session_ends_with_the_connection(sh: list[str]) -> None:
    code = (
        f"import subprocess\nsubprocess.run(['sleep', '7{os.getpid()}'], start_new_session=True)\n"
    )
    process = start(sh, sys.executable, 3600.0, code.encode())
    try:
        assert wait_for(sleeps)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
        assert wait_for(lambda: not sleeps())
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
