"""What a row's process reports: rubbish, huge and hostile values, which cost themselves and nothing else."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from bench_world import row

from envcheck.collector.bench import records
from envcheck.collector.bench.records import RowReader
from envcheck.collector.facts import dumps
from envcheck.collector.worker.messages import MARK, read
from envcheck.collector.worker.parent import _MALFORMED
from envcheck.facts.bench import RowRun


def reader(*results: Any) -> RowReader:
    """results: {key: value}, or lines (bytes)."""
    lines = [b"noise"]
    for one in results:
        if isinstance(one, bytes):
            lines.append(one)
            continue
        for key, value in one.items():
            message = {"begin": value} if key == "begin" else {"result": value, "of": key}
            lines.append(MARK + dumps(message).encode())
    found = RowReader()
    for message in read(lines):
        kind = "begin" if "begin" in message else "result"
        with contextlib.suppress(*_MALFORMED):
            found.take(kind, message[kind], message.get("of", ""))
    return found


def run_of(found: RowReader) -> RowRun:
    """As it comes into a Snapshot."""
    run = dict(found.run, repetitions=found.repetitions, losses=found.losses)
    run = {"row": row("a"), "outcome": "ok"} | run
    return msgspec.convert(json.loads(json.dumps(run, allow_nan=False)), RowRun)


def repetition(**changes: Any) -> dict[str, Any]:
    fields = {"t": 5.0, "seconds": 2.0, "steps": 100, "skipped": 1, "loss": 0.5}
    return {"repetition": {**fields, **changes}}


@pytest.mark.parametrize(
    "record",
    [
        repetition(seconds=float("nan")),
        repetition(seconds=-1),
        repetition(seconds=1e300),
        repetition(steps=1e30),
        repetition(steps="5"),
        repetition(steps=float("inf")),
        repetition(t="now"),
        {"repetition": [1, 2]},
        {"built": {"seconds": 1, "parameters": -5}},
        {"built": {"seconds": 1, "parameters": 1e40}},
        {"built": None},
        {"warm": {"steps": 3}},
        {"evidence": 5},
        {"memory": [1]},
        {"begin": "x"},
        {"take": 1, "__init__": 2, "unknown": {}},
        b"[" * 100_000,
    ],
)
def test_garbage_is_dropped(record: Any) -> None:
    found = reader(record, repetition())
    assert [one["steps"] for one in found.repetitions] == [100]
    assert run_of(found).outcome == "ok" and found.losses == [0.5]


def test_repetitions_are_bounded_and_keep_their_microseconds() -> None:
    found = reader(*[repetition(seconds=0.000125, steps=1)] * 1200)
    assert len(found.repetitions) == records.MOST_REPETITIONS
    assert found.repetitions[0]["seconds"] == 0.000125 and found.rate == pytest.approx(8000)


@pytest.mark.parametrize("loss", [float("nan"), float("-inf"), None, "x", [1]])
def test_a_loss_that_is_no_number_is_null(loss: Any) -> None:
    assert reader(repetition(loss=loss)).losses == [None]


def test_memory_is_a_fact_or_says_why_not() -> None:
    found = run_of(reader({"memory": {"pool_mib": 10, "tensors_mib": -3, "rude": 1}}))
    assert found.memory.pool_mib == 10 and not isinstance(found.memory.tensors_mib, int)


def test_words_are_made_safe_and_short() -> None:
    found = reader({"begin": {"import_seconds": 1, "framework_version": "2\x07" * 99}})
    version = found.run["framework_version"]
    assert "\x07" not in version and len(version) <= 80
