"""Rows on several GPUs: a process a rank, the same orders to all, and what it means when one dies."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from bench_world import Died, Hangs, World, row

from envcheck.collector.bench.running import rank_environ


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    return World(monkeypatch, tmp_path)


def test_ranks_get_the_same_orders_and_each_its_environment(world: World) -> None:
    (run,) = world.run([row("a", together="ddp", ranks=2)])
    one, two = world.children
    assert run.outcome == "ok" and len(run.ranks) == 2
    assert [len(rank.repetitions) for rank in run.ranks] == [3, 3] and len(run.repetitions) == 3
    assert (one.env["RANK"], two.env["RANK"]) == ("0", "1")
    assert {one.env["WORLD_SIZE"], two.env["WORLD_SIZE"]} == {"2"}
    assert (
        one.env["MASTER_PORT"] == two.env["MASTER_PORT"] and one.env["MASTER_ADDR"] == "127.0.0.1"
    )
    assert (one.place["rank"], two.place["ranks"]) == (0, 2)
    # The same number of steps, or all of them would wait for ever.
    assert world.ran[0::2] == world.ran[1::2]


def test_the_slowest_rank_counts(world: World) -> None:
    (run,) = world.run([row("a", together="ddp", ranks=2)])
    for whole, *parts in zip(
        run.repetitions, *(rank.repetitions for rank in run.ranks), strict=True
    ):
        assert whole.seconds == max(part.seconds for part in parts)


def rank_one(error: BaseException) -> Any:
    def act(mine: Any) -> None:
        if mine.place["rank"] == 1:
            raise error
        raise Hangs  # the other waits for it

    return act


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (Died(signal.SIGKILL), "crashed", "rank 1: its process died by signal 9"),
        (RuntimeError("CUDA out of memory"), "out-of-memory", "rank 1: RuntimeError: CUDA out of"),
    ],
)
def test_a_rank_that_dies_ends_the_row_with_its_reason(
    world: World, error: BaseException, outcome: str, reason: str
) -> None:
    world.said = {"a": {"at": {10: rank_one(error)}}}
    runs = world.run([row("a", together="ddp", ranks=2), row("b")])
    assert runs[0].outcome == outcome and runs[0].reason.startswith(reason)
    assert runs[1].outcome == "ok" and len(runs[0].repetitions) in (1, 2)


def test_mirrored_is_one_process_that_sees_all_gpus() -> None:
    gpus = ["0000:00:00.0", "0000:01:00.0"]
    assert rank_environ.ranks_of(row("a", together="mirrored", gpus=gpus)) == 1
    assert rank_environ.ranks_of(row("a", together="ddp", gpus=gpus)) == 2
    assert rank_environ.ranks_of(row("a", together="horovod", ranks=3)) == 3
    assert rank_environ.ranks_of(row("a", gpus=gpus[:1])) == 1


def test_horovods_ranks_meet_by_gloo() -> None:
    told = rank_environ.environ("horovod", 1, 2, 4321)
    assert told["HOROVOD_RANK"] == "1" and told["HOROVOD_SIZE"] == "2"
    assert told["HOROVOD_GLOO_RENDEZVOUS_PORT"] == "4321" and told["HOROVOD_CONTROLLER"] == "gloo"
