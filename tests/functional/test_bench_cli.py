"""`envcheck bench` as a user has it: what it tells on its way, Ctrl-C, exit codes, --save and --from.

PyTorch is a stand-in, whose rows sleep (``standin_style``).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from processes import PATIENCE, running, wait_for
from pythons import bare_environment
from standin_bench import Bench

FP32, AMP = "mlp fp32 64", "mlp amp 64"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("cli"))


Begin = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def begin(made: Bench) -> Iterator[Begin]:
    """Begin a run of the command line: what a user has, in a process group of its own."""
    begun = []

    def start(*arguments: str | Path, standin: Any = None, **more: Any) -> subprocess.Popen[bytes]:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        argv = [sys.executable, "-m", "envcheck", *map(str, arguments)]
        env = made.environment(**(standin or {}))
        begun.append(
            subprocess.Popen(argv, cwd=made.home, env=env, start_new_session=True, **pipes)
        )
        return begun[-1]

    yield start
    for one in begun:
        if one.poll() is None:
            one.kill()
        one.communicate()
    try:
        assert wait_for(lambda: not running(made.home)), running(made.home)
        assert wait_for(lambda: not made.left()), made.left()
    finally:
        for pid, _parent, _command in running(made.home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def ended(one: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)"""
    out, errors = one.communicate(timeout=PATIENCE)
    assert b"Traceback" not in out + errors
    return one.returncode, out.decode(), errors.decode()


def test_progress_the_save_and_what_is_shown_of_it_later(
    begin: Begin, made: Bench, tmp_path: Path
) -> None:
    saved, live = tmp_path / "saved.json", tmp_path / "live.json"
    kept: list[str | Path] = ["--save", saved, "--format", "json", "--output", live]
    options = ["--rounds", "2", "--busy-ok", *kept]
    standin = {FP32: {"kill": 3}}
    code, out, errors = ended(
        begin("bench", "mlp", "--target", made.target, *options, standin=standin)
    )
    assert (code, out) == (1, "")
    first, *rows = errors.splitlines()
    assert first.startswith("envcheck: 2 rows, about ")
    crashed, measured = rows
    assert crashed.startswith("envcheck: row 1 of 2: mlp fp32 64: crashed: ")
    assert "died by signal 9 (SIGKILL): farewell" in crashed
    assert measured.startswith(f"envcheck: row 2 of 2: {AMP}: ") and "samples/s" in measured

    report = json.loads(live.read_text())
    assert report["busy_ok"] and "--busy-ok" in report["command"] and report["note"]

    shown = begin("bench", "--from", saved, "--format", "json")
    judged = begin("doctor", "--from", saved, "--only", "bench")
    code, out, _told = ended(shown)
    assert code == 1 and out == live.read_text()
    code, out, _told = ended(judged)
    assert code == 1 and "BEN-004" in out and "mlp fp32 64 crashed" in " ".join(out.split())


def at_work(begin: Begin, made: Bench) -> subprocess.Popen[bytes]:
    """Two rows, of which the second is at work for ever."""
    (hung := made.home / AMP).unlink(missing_ok=True)
    one = begin("bench", "mlp", "--target", made.target, standin={AMP: {"at": str(hung)}})
    assert wait_for(hung.exists), one.poll()
    return one


def test_the_first_ctrl_c_shows_what_is_done(begin: Begin, made: Bench) -> None:
    one = at_work(begin, made)
    os.killpg(one.pid, signal.SIGINT)
    code, out, _errors = ended(one)
    assert code == 130
    words = " ".join(out.split())
    assert "interrupted after 2 rows" in words and "s, interrupted" in words
    assert f"{AMP}: interrupted: stopped by its user" in words
    assert "Samples/s" in words


def test_two_of_them_end_it_and_leave_nothing(begin: Begin, made: Bench) -> None:
    one = at_work(begin, made)
    os.killpg(one.pid, signal.SIGINT)
    time.sleep(0.02)  # two that are there at once are one
    os.killpg(one.pid, signal.SIGINT)
    code, out, errors = ended(one)
    assert code == 130
    # The first may have come to its end before the second.
    assert "interrupted after 2 rows" in " ".join(out.split()) or errors.endswith("interrupted\n")


def test_what_cannot_run_is_refused_with_3(begin: Begin, made: Bench, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    bare_environment(empty)
    nothing = begin("bench", "mlp", "--target", empty)
    large = begin("bench", "resnet50", "--batch", "1048576", "--target", made.target)
    code, out, errors = ended(nothing)
    assert (code, out) == (3, "") and "the target has no framework to train with" in errors
    code, out, errors = ended(large)
    assert (code, out) == (3, "") and "--batch 1048576: resnet50: batch" in errors
