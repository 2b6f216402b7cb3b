"""A roll-out's waves, and what became of each machine, from Ansible's events and what the action told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envcheck.exit_codes import ExitCode
from envcheck.fleet.engines.ansible import Event
from envcheck.fleet.rollout import waves
from envcheck.fleet.rollout.running import RolloutRun, worst


def shown(host: str, state: str = "ok", **printed: object) -> Event:
    return Event(event="result", host=host, state=state, answer=json.dumps(printed))


def run_of(tmp_path: Path, *events: Event) -> RolloutRun:
    run = RolloutRun(["a", "b", "c"], tmp_path, lambda end: None)
    for event in events:
        run.on_event(event)
    return run


def test_each_end_is_kept_with_its_wave(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        Event(event="play"),
        shown(
            "a",
            result="installed",
            exit_code=0,
            version="1",
            verdict="Healthy",
            carried=7,
            seconds=2,
        ),
        Event(event="play"),
        shown("b", "failed", result="failed", exit_code=5, words="no room"),
        shown("c", "skipped", result="not-begun"),
    )
    a, b, c = run.ends.values()
    assert (a.result, a.wave, a.verdict, a.carried, a.seconds) == (
        "installed",
        1,
        "Healthy",
        7,
        2.0,
    )
    assert (b.result, b.wave, b.exit_code, b.reason) == ("failed", 2, 5, "no room")
    assert (c.result, c.exit_code) == ("not-begun", 0) and "--max-fail" in run.stopped
    assert worst([a, b, c]) == ExitCode.PUT_BACK


@pytest.mark.parametrize(
    ("text", "count", "sizes"),
    [
        ("1,10%,100%", 100, [1, 10, 89]),
        ("1,10%,100%", 5, [1, 1, 3]),
        ("1,10%,100%", 1, [1]),
        ("1,10%,100%", 0, []),
        ("3", 8, [3, 3, 2]),
        ("50%", 5, [2, 2, 1]),
        (" 2 , 100% ", 7, [2, 5]),
    ],
)
def test_how_many_machines_each_wave_has(text: str, count: int, sizes: list[int]) -> None:
    assert waves.sizes(waves.parse(text), count) == sizes


@pytest.mark.parametrize("text", ["0", "3", "5%", "100%"])
def test_how_many_may_fail(text: str) -> None:
    assert waves.max_fail(f" {text} ") == text
