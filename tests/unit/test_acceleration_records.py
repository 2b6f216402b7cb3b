"""What a system's process tells: hostile values, bounds, and what its parent makes of garbage."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from children import Child, Clock

from envcheck.collector.kernels.failures import NotSupported
from envcheck.collector.systems.running import records
from envcheck.collector.systems.running.records import SystemReader, SystemWriter
from envcheck.collector.worker import messages
from envcheck.collector.worker.messages import LENGTH
from envcheck.collector.worker.parent import Limits, Worker
from envcheck.facts.acceleration import SystemTrial


def read(stdout: bytes) -> tuple[SystemReader, Worker]:
    found = SystemReader()
    worker = Worker(Child(Clock(), [(0, stdout)], (0, 0)), Limits(), found.take)
    worker.step()
    return found, worker


@pytest.fixture
def written(tmp_path: Path) -> Iterator[tuple[SystemWriter, Any]]:
    """A writer, and a function: what a parent has read of it."""
    file = tmp_path / "out"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT)
    yield SystemWriter(messages.Writer(descriptor)), lambda: read(file.read_bytes())[0]
    os.close(descriptor)


def only(result: SystemReader) -> SystemTrial:
    """Its one trial, as a Snapshot holds it."""
    (trial,) = msgspec.convert(json.loads(json.dumps(result.trials)), list[SystemTrial])
    return trial


class Scalar:
    """As numpy's and the frameworks': ``item()`` gives Python's."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def item(self) -> Any:
        if self.value is None:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.value

    def __str__(self) -> str:
        return f"[{self.value}]"


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3),
        (True, True),
        (0.5, 0.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (Scalar(2.5), 2.5),
        (Scalar(float("inf")), "inf"),
        (Scalar(True), True),
        (Scalar(None), "[None]"),
        (2**70, str(2**70)),
        ("two\nlines\t", "two lines"),
        ("\x1b[31mred\x07\u202e", "[31mred"),
        (b"bytes \xff", "bytes \ufffd"),
        ("half \ud800 a pair", "half ? a pair"),
        ("x" * 1000, "x" * LENGTH),
        ("x" * 10_000_000, "x" * LENGTH),
        (["a", 1, None], ["a", "1", "None"]),
        ({"b", "a"}, ["a", "b"]),
        (["w"] * 1000, ["w"] * records.WORDS),
        ({"a": 1}, "{'a': 1}"),
        (Unspeakable(), "Unspeakable, which cannot be shown: RuntimeError"),
        (1j, "1j"),
    ],
)
def test_evidence_is_what_a_snapshot_can_hold(
    written: tuple[SystemWriter, Any], value: Any, expected: Any
) -> None:
    teller, read_back = written
    with teller.trial("a") as trial:
        trial["x"] = value
    found = only(read_back()).evidence["x"]
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (NotSupported("this JAX has none"), "not-supported", "this JAX has none"),
        (ValueError("two\nlines"), "error", "ValueError: two lines"),
        (ValueError(), "error", "ValueError"),
        (
            ValueError(Unspeakable()),
            "error",
            "ValueError: ValueError, which cannot be shown: RuntimeError",
        ),
        (MemoryError(), "out-of-memory", "MemoryError"),
        (
            RuntimeError("CUDA out of memory. Tried"),
            "out-of-memory",
            "RuntimeError: CUDA out of memory. Tried",
        ),
        (RuntimeError("x" * 3000 + "RESOURCE_EXHAUSTED"), "out-of-memory", None),
    ],
)
def test_what_a_trial_raises_is_its_outcome_and_the_next_one_runs(
    written: tuple[SystemWriter, Any], error: Exception, outcome: str, reason: str | None
) -> None:
    teller, read_back = written
    with teller.trial("a") as trial:
        trial["before"] = 1
        raise error
    with teller.trial("b", control=True):
        pass
    first, second = msgspec.convert(read_back().trials, list[SystemTrial])
    assert (first.name, first.outcome, first.evidence) == ("a", outcome, {"before": 1})
    assert first.reason == (first.reason if reason is None else reason)
    assert len(first.reason) <= LENGTH
    assert (second.name, second.outcome, second.control) == ("b", "ok", True)


def test_what_one_process_tells_is_bounded(written: tuple[SystemWriter, Any]) -> None:
    teller, read_back = written
    for _ in range(20):
        with teller.trial("a") as trial:
            for key in range(200):
                trial[f"k{key}"] = "x" * 1000
    found = read_back()
    assert found.full and len(json.dumps(found.trials)) <= records.TOTAL
    assert len(found.trials[0]["evidence"]) == records.KEYS


GARBAGE: list[Any] = [
    5,
    {},
    {"name": "a"},
    {"name": "a", "outcome": "well"},
    {"name": "a", "outcome": "ok", "seconds": "soon"},
    {"name": "a", "outcome": "ok", "seconds": -1},
    {"name": "a", "outcome": "ok", "evidence": 5},
]
FACTS: list[Any] = [
    5,
    {"framework_version": 5},
    {"framework_version": {"unavailable": "because"}},
    {"system": 5, "gpus": "x", "trials": 1},
]


@pytest.mark.parametrize(
    "message",
    [
        *({"result": one, "of": "trial"} for one in GARBAGE),
        *({"result": one, "of": "run"} for one in FACTS),
        {"begin": {"import_seconds": "soon"}},
        {"begin": 5},
        {"result": {"name": "a", "outcome": "ok"}, "of": "nothing"},
    ],
)
def test_garbage_is_dropped(message: dict[str, Any]) -> None:
    found, worker = read(messages.encode(message) + messages.encode({"done": {}}))
    assert found.run == {} and found.trials == [] and worker.done
