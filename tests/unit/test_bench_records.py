"""What a row's process tells: rubbish, huge and hostile values, which cost themselves and nothing else."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from bench_world import row

from envcheck.collector.bench import records
from envcheck.collector.bench.records import RowReader
from envcheck.collector.bench.running import driver_memory
from envcheck.collector.facts import dumps
from envcheck.collector.worker.messages import MARK, read
from envcheck.collector.worker.parent import _MALFORMED
from envcheck.facts.bench import RowRun


def heard(*results: Any) -> RowReader:
    """results: {key: value}, or whole messages (bytes)."""
    lines = [b"noise"]
    for one in results:
        if isinstance(one, bytes):
            lines.append(one)
            continue
        for key, value in one.items() if isinstance(one, dict) else [("losses", one)]:
            message = {"begin": value} if key == "begin" else {"result": value, "of": key}
            lines.append(MARK + json.dumps(message).encode())
    found = RowReader()
    for message in read(lines):
        kind = "begin" if "begin" in message else "result"
        with contextlib.suppress(*_MALFORMED):
            found.take(kind, message[kind], message.get("of", ""))
    return found


def run_of(found: RowReader) -> RowRun:
    """As it comes into a Snapshot."""
    told = dict(found.run, losses=found.losses)
    told["repetitions"] = [dict(one, began=0.0) for one in found.repetitions]
    told = {"row": row("a"), "outcome": "ok"} | told
    return msgspec.convert(json.loads(json.dumps(told, allow_nan=False)), RowRun)


WELL = {"repetition": {"seconds": 2.0, "steps": 100, "skipped": 1}}


@pytest.mark.parametrize(
    "record",
    [
        {"repetition": {"seconds": float("nan"), "steps": 1, "skipped": 0}},
        {"repetition": {"seconds": -1, "steps": 1, "skipped": 0}},
        {"repetition": {"seconds": 1e300, "steps": 1, "skipped": 0}},
        {"repetition": {"seconds": 1, "steps": 1e30, "skipped": 0}},
        {"repetition": {"seconds": 1, "steps": 5, "skipped": 6}},
        {"repetition": {"seconds": 1, "steps": "5", "skipped": 0}},
        {"repetition": {"seconds": 1, "steps": float("inf"), "skipped": 0}},
        {"repetition": [1, 2]},
        {"built": {"seconds": 1, "parameters": -5}},
        {"built": {"seconds": 1, "parameters": 1e40}},
        {"built": None},
        {"ran": {"steps": 3}},
        {"losses": "1234"[:0] or None},
        {"losses": [[1]]},
        {"evidence": 5},
        {"memory": [1]},
        {"begin": "x"},
        {"hear": 1, "__init__": 2, "unknown": {}},
        "words",
        None,
    ],
)
def test_garbage_is_dropped(record: Any) -> None:
    found = heard(record, WELL)
    assert found.repetitions == [{"seconds": 2.0, "steps": 100, "skipped": 1}]
    assert run_of(found).outcome == "ok" and not found.losses


def test_losses_and_repetitions_are_bounded() -> None:
    found = heard(*[{"losses": [1.0] * 1500}] * 3, *[WELL] * 1200)
    assert len(found.losses) == records.MOST_LOSSES
    assert len(found.repetitions) == records.MOST_REPETITIONS


def test_a_loss_that_is_no_number_is_null() -> None:
    nan = json.loads(dumps([float("nan"), float("-inf"), 2.5]))
    assert heard({"losses": nan}).losses == [None, None, 2.5]
    assert heard({"losses": [float("nan")]}).losses == [None]


def test_memory_and_accuracy_are_facts_or_say_why_not() -> None:
    found = heard(
        {"memory": {"pool_mib": 10, "tensors_mib": -3, "process_mib": "much", "rude": 1}},
        {"accuracy": 1.5},
    )
    run = run_of(found)
    assert run.memory.pool_mib == 10 and not isinstance(run.memory.tensors_mib, int)
    assert not isinstance(run.memory.process_mib, int) and not isinstance(run.accuracy, float)
    assert run_of(heard({"accuracy": 0.97})).accuracy == 0.97


def test_words_are_made_safe_and_short() -> None:
    found = heard({"begin": {"import_seconds": 1, "framework_version": "2\x07" * 99}})
    version = found.run["framework_version"]
    assert "\x07" not in version and len(version) <= 80


def test_short_repetitions_keep_their_microseconds() -> None:
    found = heard({"repetition": {"seconds": 0.000125, "steps": 1, "skipped": 0}})
    assert found.repetitions[0]["seconds"] == 0.000125 and found.rate == pytest.approx(8000)


@pytest.mark.parametrize("said", [b"", b"[]", b"NVML", b'{"x": 1}', b'{"1": null}', b"[" * 100_000])
def test_a_driver_that_tells_rubbish_tells_nothing(said: bytes) -> None:
    assert driver_memory.read(said) == {}


class Nvml:
    """Two GPUs; one process on both, one without a figure, and a GPU that is lost."""

    def call(self, name: str, *arguments: Any) -> Any:
        return {"nvmlDeviceGetCount": 3}.get(name, arguments[0] if arguments else None)

    def first(self, _names: Any, handle: int) -> Any:
        if handle == 2:
            raise RuntimeError("lost")
        used = [(11, (5 << 20) * (handle + 1)), (12, None), (13, 2**64 - 1)]
        return [type("P", (), {"pid": pid, "usedGpuMemory": mib})() for pid, mib in used]


def test_the_driver_counts_each_process_on_the_gpu_where_it_has_most() -> None:
    assert driver_memory.by_process(Nvml()) == {"11": 10}
