"""Ranks of a system: how long they may take and who is named where one fails."""

from __future__ import annotations

import time
from typing import Any

import pytest

from envcheck.collector.systems.running import ranks
from envcheck.collector.worker import messages


class _Result:
    outcome = "exited"
    stderr = b"ValueError: no"
    stuck = None
    seconds = 1.0

    def describe(self) -> str:
        return "exited with status 1"


class _Child:
    """Of a rank: what it has said, and whether it is over."""

    def __init__(self, output: bytes = b"", over: bool = False) -> None:
        self.output = output
        self.result = _Result() if over else None
        self.stopped = False

    def poll(self) -> _Result | None:
        return self.result

    def new_stdout(self) -> bytes:
        output, self.output = self.output, b""
        return output

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
    second.output = _ready(2.5, framework_version="2.15.1")
    wait.look()
    time.sleep(0.001)
    wait.look()
    assert first.stopped and second.stopped and wait.why == "no answer within 0 s"
    assert writer.begun == [(2.5, "2.15.1")]


def test_the_rank_that_failed_is_named_and_not_one_that_waited_for_it() -> None:
    waited, failed = _ranks(_Child(over=True), _Child(over=True))
    stopped = _Result()
    stopped.outcome = "stopped"
    waited.worker.child.result = stopped
    for one in (waited, failed):
        one.end("another rank had failed")
    assert waited.reason == "another rank had failed"
    with pytest.raises(
        RuntimeError, match=r"^rank 1: its process exited with status 1: ValueError: no$"
    ):
        ranks.answers([waited, failed])
    (well,) = _ranks(_Child(_answer({"sum": 3}), over=True))
    well.end("")
    assert ranks.answers([well]) == [{"sum": 3}]
