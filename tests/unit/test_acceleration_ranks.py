"""Ranks of a system: how long they may take, who is named where one fails, and where they run."""

from __future__ import annotations

import time
from typing import Any

import pytest
from systems import framework, gpu, system

from envcheck.collector.systems import NotASystem
from envcheck.collector.systems.running import jobs, ranks
from envcheck.collector.worker import messages

NOTHING: tuple[list[Any], str] = ([], "no GPU here")


class _Result:
    outcome = "exited"
    stderr = b"ValueError: no"
    stuck = None
    seconds = 1.0

    def describe(self) -> str:
        return "exited with status 1"


class _Child:
    """Of a rank: what it has said, and whether it is over."""

    def __init__(self, said: bytes = b"", over: bool = False) -> None:
        self.said = said
        self.result = _Result() if over else None
        self.stopped = False

    def poll(self) -> _Result | None:
        return self.result

    def new_stdout(self) -> bytes:
        said, self.said = self.said, b""
        return said

    def stop(self) -> None:
        self.stopped = True


def _ranks(*children: _Child) -> list[ranks.Rank]:
    return [ranks.Rank(number, child) for number, child in enumerate(children)]


def _answer(value: Any) -> bytes:
    return messages.encode({"result": value, "of": "rank"})


def _ready(seconds: float, **facts: Any) -> bytes:
    return messages.encode({"begin": {"import_seconds": seconds, **facts}})


def test_ranks_get_no_more_time_than_that_once_one_has_failed() -> None:
    well, hanging, failed = _Child(_answer(1), over=True), _Child(), _Child()
    wait = ranks.RankWait(_ranks(well, hanging, failed), 100.0, 0.0, None)
    wait.look()
    assert not hanging.stopped
    failed.result = _Result()
    wait.look()
    time.sleep(0.001)
    wait.look()
    assert hanging.stopped and wait.why == "another rank had failed"
    late = ranks.RankWait(_ranks(failed, hanging), 0.0, 0.0, None)
    late._one_failed, failed.result = False, None
    time.sleep(0.001)
    late.look()
    failed.result = hanging.result = _Result()  # they were stopped, and so are over
    late.look()
    assert late.why == "no answer within 0 s"
    patient = _Child()
    ranks.RankWait(_ranks(failed, patient), 100.0, None, None).look()
    assert not patient.stopped


class _Writer:
    def __init__(self) -> None:
        self.begun: list[tuple[float, str | None]] = []

    def begin(self, seconds: float, version: str | None = None) -> None:
        self.begun.append((seconds, version))


def test_the_seconds_of_ranks_begin_when_all_have_imported_their_framework() -> None:
    first, second, writer = _Child(_ready(1.5)), _Child(), _Writer()
    wait = ranks.RankWait(_ranks(first, second), 0.0, None, writer)
    wait.look()
    time.sleep(0.001)
    wait.look()
    assert not first.stopped and not writer.begun
    second.said = _ready(2.5, framework_version="2.15.1")
    wait.look()
    time.sleep(0.001)
    wait.look()
    assert first.stopped and second.stopped and wait.why == "no answer within 0 s"
    assert writer.begun == [(2.5, "2.15.1")]


def test_ranks_that_failed_before_they_were_ready_begin_nothing_later() -> None:
    first, second, writer = _Child(over=True), _Child(), _Writer()
    wait = ranks.RankWait(_ranks(first, second), 100.0, 50.0, writer)
    wait.look()
    second.result = _Result()
    wait.look()
    wait.look()
    assert writer.begun == [(0.0, None)]


def test_the_rank_that_failed_is_named_and_not_one_that_waited_for_it() -> None:
    waited, failed = _ranks(_Child(over=True), _Child(over=True))
    stopped = _Result()
    stopped.outcome = "stopped"
    waited.worker.child.result = stopped
    for one in (waited, failed):
        one.end("another rank had failed")
    assert waited.reason == "another rank had failed"
    with pytest.raises(RuntimeError, match=r"^rank 1: exited with status 1: ValueError: no$"):
        ranks.answers([waited, failed])
    (well,) = _ranks(_Child(_answer({"sum": 3}), over=True))
    well.end("")
    assert ranks.answers([well]) == [{"sum": 3}]


def _planned(on_cpu: str, chosen: Any, **facts: Any) -> tuple[str, str, str, str | None]:
    one = system(
        "ranks", framework="tensorflow", gpus=0 if on_cpu == "always" else 2, on_cpu=on_cpu
    )
    (job,) = jobs.plan([one], ["ranks"], chosen, {"target": {"tensorflow": framework(**facts)}})
    return job.outcome, job.reason, job.on, job.visible


ON_THE_CPU = ("", "", "cpu", "-1")
TWO = ([gpu(0), gpu(1)], "")


@pytest.mark.parametrize("on_cpu", ["none", "few", "always"])
def test_what_may_run_on_the_cpu_does_so_without_a_gpu(on_cpu: str) -> None:
    assert _planned(on_cpu, NOTHING) == ON_THE_CPU
    assert _planned(on_cpu, NOTHING, cuda_build=False, gpus=[]) == ON_THE_CPU
    assert _planned(on_cpu, TWO, cuda_build=False, gpus=[]) == ON_THE_CPU


def test_one_gpu_is_left_alone_where_fewer_than_needed_are_as_good_as_none() -> None:
    one: Any = ([gpu(0)], "")
    assert _planned("few", one) == ON_THE_CPU
    assert _planned("always", one) == ON_THE_CPU
    assert _planned("none", one)[:2] == ("not-applicable", "one GPU")
    assert _planned("few", ([gpu(0), gpu(0, "MIG-a")], "")) == ON_THE_CPU


def test_two_gpus_are_used_unless_it_has_no_use_for_any() -> None:
    assert _planned("few", TWO) == ("", "", "gpu", "GPU-0,GPU-1")
    assert _planned("none", TWO) == ("", "", "gpu", "GPU-0,GPU-1")
    assert _planned("always", TWO) == ON_THE_CPU
    assert _planned("few", TWO, gpus=[]) == ON_THE_CPU
    assert _planned("none", TWO, gpus=[])[0] == "not-run"
    with pytest.raises(NotASystem, match="its ON_CPU is none"):
        system("ranks", on_cpu="sometimes")
