"""The runner of a bench's rows, on a made-up clock: each way in which a row ends."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from bench_world import GPU, Died, Hangs, World, row

from envcheck.facts.bench import RowRun


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    return World(monkeypatch, tmp_path)


def raising(error: BaseException) -> Any:
    def act() -> None:
        raise error

    return act


def outcomes(runs: list[RowRun]) -> dict[str, str]:
    return {run.row.name: run.outcome for run in runs}


def test_a_row_has_all_that_it_measured(world: World) -> None:
    first, second = world.run([row("a", gpus=[GPU]), row("b")])
    assert (first.outcome, second.outcome) == ("ok", "ok")
    assert [one.steps for one in first.repetitions] == [100] * 3
    assert first.repetitions[0].seconds == pytest.approx(1.0)
    assert first.parameters == 7 and first.framework_version == "9.9" and first.warm_up.steady
    assert first.evidence == {"products": 3} and first.losses == [1.5] * 3
    assert first.memory.pool_mib == 200 and [one.gpu for one in first.samples] == [GPU]
    assert world.bench.settings == {"XLA_FLAGS": "--x"} and not second.samples
    a, b = (one.env for one in world.children)
    assert a["TMPDIR"] != b["TMPDIR"] and a["TMPDIR"].startswith(str(world.folder))
    assert (a["CUDA_VISIBLE_DEVICES"], b["CUDA_VISIBLE_DEVICES"]) == ("GPU-0", "-1")
    assert a["NVIDIA_TF32_OVERRIDE"] == "0"


@pytest.mark.parametrize(
    ("act", "outcome", "reason"),
    [
        (RuntimeError("cuDNN: bad param"), "error", "RuntimeError: cuDNN: bad param"),
        (RuntimeError("CUDA out of memory. Tried 2 GiB"), "out-of-memory", "CUDA out of memory"),
        (Died(signal.SIGSEGV), "crashed", "its process died by signal 11 (SIGSEGV)"),
        (Died(signal.SIGABRT, b"F0 RESOURCE_EXHAUSTED: 3G\n"), "out-of-memory", "RESOURCE_EX"),
        (Died(signal.SIGKILL), "crashed", "its process died by signal 9 (SIGKILL)"),
        (Hangs(), "timeout", "no answer within"),
    ],
)
@pytest.mark.parametrize("part", ["build", "run"])
def test_what_ends_a_row_costs_that_row_alone(
    world: World, act: BaseException, outcome: str, reason: str, part: str
) -> None:
    world.acts = {"a": {part: raising(act)}}
    runs = world.run([row("a"), row("b")])
    assert outcomes(runs) == {"a": outcome, "b": "ok"} and reason in runs[0].reason
    last = [event for event in world.events if event["phase"] == "over"]
    assert [event["outcome"] for event in last] == [outcome, "ok"]


def test_the_users_word_ends_it_and_keeps_what_is_done(world: World) -> None:
    def stop() -> None:
        world.runner.stop()
        raise Hangs

    world.acts = {"b": {"evidence": stop}}
    runs = world.run([row("a"), row("b"), row("c")])
    assert outcomes(runs) == {"a": "ok", "b": "interrupted"} and world.bench.interrupted
