"""Ranks of a system: how long they may take, who is named where one fails, and where they run."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from systems import framework, gpu, system

from envcheck.collector.acceleration import jobs, ranks, telling
from envcheck.collector.acceleration.systems import NotASystem

NOTHING: tuple[list[Any], str] = ([], "no GPU here")


class _Result:
    outcome = "exited"
    stderr = b"ValueError: no"

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


def _said(**record: Any) -> bytes:
    return telling.MARK + json.dumps(record).encode() + b"\n"


def test_ranks_get_no_more_time_than_that_once_one_has_failed() -> None:
    well, hanging, failed = _Child(_said(answer=1), over=True), _Child(), _Child()
    wait = ranks._Wait(_ranks(well, hanging, failed), 100.0, 0.0, None)
    wait.look()
    assert not hanging.stopped
    failed.result = _Result()
    wait.look()
    time.sleep(0.001)
    wait.look()
    assert hanging.stopped and wait.why == "another rank had failed"
    late = ranks._Wait(_ranks(failed, hanging), 0.0, 0.0, None)
    late._bereft, failed.result = False, None
    time.sleep(0.001)
    late.look()
    failed.result = hanging.result = _Result()  # they were stopped, and so are over
    late.look()
    assert late.why == "no answer within 0 s"
    patient = _Child()
    ranks._Wait(_ranks(failed, patient), 100.0, None, None).look()
    assert not patient.stopped


class _Teller:
    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def run(self, **facts: Any) -> None:
        self.told.append(facts)

    def tell(self, **record: Any) -> None:
        self.told.append(record)


def test_the_seconds_of_ranks_begin_when_all_have_imported_their_framework() -> None:
    first, second, teller = _Child(_said(ready=1.5)), _Child(), _Teller()
    wait = ranks._Wait(_ranks(first, second), 0.0, None, teller)
    wait.look()
    time.sleep(0.001)
    wait.look()
    assert not first.stopped and not teller.told
    second.said = _said(run={"framework_version": "2.15.1"}) + _said(ready=2.5)
    wait.look()
    time.sleep(0.001)
    wait.look()
    assert first.stopped and second.stopped and wait.why == "no answer within 0 s"
    assert teller.told == [{"framework_version": "2.15.1"}, {"ready": 2.5}]


def test_what_ranks_know_is_told_where_they_failed_before_they_were_ready() -> None:
    first, second, teller = _Child(over=True), _Child(), _Teller()
    first.said = _said(run={"framework_version": "2.21.0"})
    wait = ranks._Wait(_ranks(first, second), 100.0, 50.0, teller)
    wait.look()
    second.result = _Result()
    wait.look()
    wait.look()
    assert teller.told == [{"framework_version": "2.21.0"}, {"ready": 0.0}]


def test_the_rank_that_failed_is_named_and_not_one_that_waited_for_it() -> None:
    waited, failed = _ranks(_Child(over=True), _Child(over=True))
    waited._child.result.outcome = "stopped"
    for one in (waited, failed):
        one.end("another rank had failed")
    assert waited.reason == "another rank had failed"
    with pytest.raises(RuntimeError, match=r"^rank 1: exited with status 1: ValueError: no$"):
        ranks.answers([waited, failed])
    (well,) = _ranks(_Child(_said(answer={"sum": 3}), over=True))
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
