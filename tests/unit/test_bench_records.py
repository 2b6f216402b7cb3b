"""What a row's process reports: rubbish, huge and hostile values, which cost themselves and nothing else."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest

from envcheck.collector.bench import records
from envcheck.collector.bench.records import RowReader
from envcheck.collector.facts import dumps
from envcheck.collector.worker.messages import MARK, read
from envcheck.collector.worker.parent import _MALFORMED
from envcheck.facts.bench import BenchRow, RowRun


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
    row = BenchRow(name="a", what="mlp", model="mlp", style="torch")
    run = {"row": msgspec.structs.asdict(row), "outcome": "ok"} | run
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
