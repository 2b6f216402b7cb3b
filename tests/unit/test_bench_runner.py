"""The runner of a bench's rows, on a made-up clock: turns, memory, and each way in which a row ends."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from bench_world import GPU, Died, Hangs, MadeChild, World, row

from envcheck.facts.base import Unavailable
from envcheck.facts.bench import RowRun


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    return World(monkeypatch, tmp_path)


def raising(error: BaseException) -> Any:
    def act(*_given: Any) -> None:
        raise error

    return act


def outcomes(runs: list[RowRun]) -> dict[str, str]:
    return {run.row.name: run.outcome for run in runs}


def test_rows_of_a_group_are_measured_in_turn(world: World) -> None:
    runs = world.run([row("a", gpus=[GPU]), row("b", gpus=[GPU]), row("c", gpus=[GPU])])
    measured = [name for name, what in world.orders if what == "measure"]
    assert measured == ["a", "b", "c"] * 3
    assert all(run.outcome == "ok" and run.in_turn for run in runs)
    first = runs[0]
    assert [one.steps for one in first.repetitions] == [100] * 3
    assert first.repetitions[0].seconds == pytest.approx(1.0)
    assert first.parameters == 7 and first.framework_version == "9.9"
    assert first.evidence == {"products": 3} and first.losses == [1.5] * 3
    assert first.accuracy == 0.5 and first.warm_up.steady
    assert world.bench.settings == {"XLA_FLAGS": "--x"}


def test_a_row_alone_is_in_no_turn(world: World) -> None:
    (run,) = world.run([row("a")])
    assert run.outcome == "ok" and not run.in_turn
    assert world.children[0].env["CUDA_VISIBLE_DEVICES"] == "-1"


def test_a_row_has_a_folder_of_its_own_and_its_styles_variables(world: World) -> None:
    world.run([row("a", gpus=[GPU]), row("b", gpus=[GPU])])
    a, b = (one.env for one in world.children)
    assert a["TMPDIR"] != b["TMPDIR"] and a["TMPDIR"].startswith(str(world.folder))
    assert a["CUDA_VISIBLE_DEVICES"] == "GPU-0" and a["NVIDIA_TF32_OVERRIDE"] == "0"


def test_memory_has_three_columns_and_samples_are_those_of_the_measured_time(world: World) -> None:
    (run,) = world.run([row("a", gpus=[GPU], batch=10)])
    assert run.memory.pool_mib == 200 and run.memory.process_mib == 700
    (told,) = run.samples
    assert 24 <= len(told.seconds) <= 36 and set(told.values) == {"power_w", "throttle_reasons"}


def test_without_nvml_the_drivers_count_is_not_there(world: World) -> None:
    world.driver = False
    (run,) = world.run([row("a", gpus=[GPU])])
    assert run.outcome == "ok" and isinstance(run.memory.process_mib, Unavailable)


def test_on_a_cpu_the_hosts_memory_is_told(world: World) -> None:
    (run,) = world.run([row("a")])
    assert isinstance(run.memory.process_mib, int) and run.memory.process_mib > 0


def test_rows_that_do_not_fit_together_run_one_after_another(world: World) -> None:
    world.said = {name: {"fixed": 6000} for name in "ab"}
    runs = world.run([row("a", gpus=[GPU]), row("b", gpus=[GPU])])
    assert [name for name, what in world.orders if what == "measure"] == ["a"] * 3 + ["b"] * 3
    assert outcomes(runs) == {"a": "ok", "b": "ok"} and not any(run.in_turn for run in runs)
    # By the figures beforehand: b was built once.
    assert [name for name, what in world.orders if what == "build"] == ["a", "b"]


def test_a_row_that_finds_the_memory_taken_is_run_again_alone(world: World) -> None:
    world.said = {"b": {"fixed": 9400}}
    runs = world.run([row("a", gpus=[GPU]), row("b", gpus=[GPU]), row("c", gpus=[GPU])])
    assert outcomes(runs) == {"a": "ok", "b": "ok", "c": "ok"}
    assert [name for name, what in world.orders if what == "build"] == ["a", "b", "b", "c"]
    assert not any(run.in_turn for run in runs)


def test_a_row_that_fits_nowhere_is_out_of_memory(world: World) -> None:
    world.said = {"b": {"fixed": 20_000}}
    runs = world.run([row("a", gpus=[GPU]), row("b", gpus=[GPU])])
    assert outcomes(runs) == {"a": "ok", "b": "out-of-memory"}
    assert "CUDA out of memory" in runs[1].reason


@pytest.mark.parametrize(
    ("act", "outcome", "reason"),
    [
        (raising(RuntimeError("cuDNN: bad param")), "error", "RuntimeError: cuDNN: bad param"),
        (raising(Died(signal.SIGSEGV)), "crashed", "its process died by signal 11 (SIGSEGV)"),
        (
            raising(Died(signal.SIGABRT, b"F0 RESOURCE_EXHAUSTED: 3G\n")),
            "out-of-memory",
            "RESOURCE_EX",
        ),
        (raising(Died(signal.SIGKILL)), "crashed", "its process died by signal 9 (SIGKILL)"),
        (raising(Hangs()), "timeout", "no answer within 63 s"),
        (
            lambda mine: mine.finish("flooded", None),
            "crashed",
            "its process wrote more than 16 MiB",
        ),
    ],
)
def test_what_ends_a_row_costs_that_row_alone(
    world: World, act: Any, outcome: str, reason: str
) -> None:
    warm = 8  # runs until the first repetition is over
    world.said = {"a": {"at": {warm + 2: act}}}
    runs = world.run([row("a"), row("b")])
    assert outcomes(runs) == {"a": outcome, "b": "ok"}
    assert reason in runs[0].reason
    assert 0 < len(runs[0].repetitions) < 3 and len(runs[1].repetitions) == 3


def test_a_build_that_hangs_costs_its_deadline(world: World) -> None:
    world.said = {"a": {"at": {1: raising(Hangs())}}}
    runs = world.run([row("a"), row("b")])
    assert outcomes(runs) == {"a": "timeout", "b": "ok"} and "300 s" in runs[0].reason


@pytest.mark.parametrize("part", ["evidence", "memory", "accuracy"])
def test_what_cannot_be_told_costs_itself_alone(world: World, part: str) -> None:
    world.said = {"a": {part: raising(ValueError("no such thing"))}}
    (run,) = world.run([row("a", gpus=[GPU])])
    assert run.outcome == "ok" and len(run.repetitions) == 3
    if part == "evidence":
        assert run.evidence == {"problem": "ValueError: no such thing"}
    else:
        told = run.memory.pool_mib if part == "memory" else run.accuracy
        assert isinstance(told, Unavailable) and "no such thing" in told.detail


def test_losses_from_the_seed_on_may_be_no_numbers(world: World) -> None:
    world.said = {"b": {"loss": float("nan")}}
    runs = world.run([row("a", steps=5), row("b", steps=5)])
    assert runs[0].losses == [1.5] * 5 and runs[1].losses == [None] * 5
    assert all(run.outcome == "ok" and not run.repetitions for run in runs)


def test_skipped_steps_are_told(world: World) -> None:
    world.said = {"a": {"skipped": 2}}
    (run,) = world.run([row("a")])
    assert [one.skipped for one in run.repetitions] == [2] * 3


def test_the_users_word_ends_it_and_keeps_what_is_done(world: World) -> None:
    def stop(_mine: MadeChild) -> None:
        world.runner.stop()

    world.said = {"b": {"at": {10: stop}}}
    runs = world.run([row("a", group=""), row("b", group=""), row("c", group="")])
    assert outcomes(runs) == {"a": "ok", "b": "interrupted"}
    assert world.bench.interrupted and len(runs[1].repetitions) in (1, 2)


def test_no_row_is_begun_after_the_limit(world: World) -> None:
    runs = world.run([row("a", group=""), row("b", group="")], limit=1.0)
    assert outcomes(runs) == {"a": "ok", "b": "not-run"} and runs[1].reason == "no time left for it"


def test_a_gpu_that_is_not_there(world: World) -> None:
    (run,) = world.run([row("a", gpus=["0000:09:00.0"])])
    assert run.outcome == "not-run" and "0000:09:00.0" in run.reason and not world.children


def test_events_tell_the_phase_the_round_the_rate_and_what_is_left(world: World) -> None:
    world.run([row("a", batch=4), row("b", batch=4)])
    phases = [event["phase"] for event in world.events if event["row"] == "a"]
    assert [one for place, one in enumerate(phases) if one not in phases[:place]] == [
        "import",
        "build",
        "warm-up",
        "measure",
    ]
    last = world.events[-1]
    assert (last["round"], last["rounds"]) == (3, 3) and last["rate"] == pytest.approx(400)
    lefts = [event["left"] for event in world.events]
    assert lefts[0] > lefts[-1] >= 0
