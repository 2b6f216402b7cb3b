"""A framework's trials in a process of their own: what works, fails, crashes and hangs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from processes import stretched

from envcheck.collector import trials
from envcheck.collector.runtime.context import Context

JAX = """
import os, sys, time

class Array:
    def block_until_ready(self):
        return self
    def __float__(self):
        return 1.0
    def sum(self):
        return self

class numpy:
    @staticmethod
    def ones(shape, dtype="float32"):
        return Array()

class lax:
    pass

def devices(kind):
    return [kind]

def device_put(array, place):
    return array

def jit(function):
    def compiled(*arguments):
        {xla}
        return Array()
    return compiled

def grad(function, numbers):
    return {grad}
"""


def tried(folder: Path, seconds: float = 20.0, **words: str) -> tuple[list[dict[str, Any]], str]:
    (folder / "jax.py").write_text(JAX.format(**({"xla": "pass", "grad": "function"} | words)))
    environ = dict(os.environ, PYTHONPATH=str(folder))
    made: tuple[list[dict[str, Any]], str] = trials.run(Context(environ), "jax", seconds)
    return made


def outcomes(made: list[dict[str, Any]]) -> dict[str, str]:
    return {one["name"]: one["outcome"] for one in made}


def test_what_fails_is_told_with_its_words(tmp_path: Path) -> None:
    words = "libdevice not found at ./libdevice.10.bc"
    step = f"print('ptxas: no CUDA', file=sys.stderr); raise RuntimeError('{words}')"
    made, log = tried(tmp_path, xla=step)
    assert set(outcomes(made).values()) == {"failed"}
    assert made[0]["error"].startswith("RuntimeError: libdevice not found")
    assert "ptxas: no CUDA" in log


def test_a_crash_costs_what_comes_after_it(tmp_path: Path) -> None:
    made, _log = tried(tmp_path, xla="os.abort()")
    assert [one["name"] for one in made] == ["xla"]
    assert made[0]["outcome"] == "crashed" and "signal 6" in made[0]["error"]


def test_what_hangs_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = stretched(1.5)
    monkeypatch.setattr(trials, "LIMIT", limit)
    made, _log = tried(tmp_path, seconds=20 * limit, xla="time.sleep(600)")
    assert outcomes(made) == {"xla": "timeout"}


def test_another_interface_is_no_failure(tmp_path: Path) -> None:
    made, _log = tried(tmp_path, xla="raise AttributeError('no such thing')")
    assert set(outcomes(made).values()) == {"not-supported"}


def test_without_time_nothing_is_tried(tmp_path: Path) -> None:
    assert tried(tmp_path, seconds=5.0) == ([], "")
