"""What a system's process tells: hostile values, bounds, and what its parent makes of garbage."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.collector.acceleration import telling
from envcheck.collector.acceleration.telling import MARK, SystemHeard, SystemTeller
from envcheck.collector.kernels.failures import NotSupported
from envcheck.facts.acceleration import SystemTrial


@pytest.fixture
def told(tmp_path: Path) -> Iterator[tuple[SystemTeller, Any]]:
    """A Teller, and a function: what a parent has heard of it."""
    file = tmp_path / "out"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT)

    def heard() -> SystemHeard:
        found = SystemHeard()
        found.hear(file.read_bytes())
        return found

    yield SystemTeller(descriptor), heard
    os.close(descriptor)


def only(heard: SystemHeard) -> SystemTrial:
    """Its one trial, as a Snapshot holds it."""
    (trial,) = msgspec.convert(json.loads(json.dumps(heard.trials)), list[SystemTrial])
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
        ("x" * 1000, "x" * telling.LENGTH),
        ("x" * 10_000_000, "x" * telling.LENGTH),
        (["a", 1, None], ["a", "1", "None"]),
        ({"b", "a"}, ["a", "b"]),
        (["w"] * 1000, ["w"] * telling.WORDS),
        ({"a": 1}, "{'a': 1}"),
        (Unspeakable(), "Unspeakable, which cannot be shown: RuntimeError"),
        (1j, "1j"),
    ],
)
def test_evidence_is_what_a_snapshot_can_hold(
    told: tuple[SystemTeller, Any], value: Any, expected: Any
) -> None:
    teller, heard = told
    with teller.trial("a") as trial:
        trial["x"] = value
    found = only(heard()).evidence["x"]
    assert found == expected and type(found) is type(expected)


def test_nothing_is_left_out_of_evidence(told: tuple[SystemTeller, Any]) -> None:
    teller, heard = told
    with teller.trial("a") as trial:
        trial["none"] = None
        trial["scalar"] = Scalar(0)
    assert only(heard()).evidence == {"scalar": 0}


def test_numpy_s_own_scalars_are_numbers(told: tuple[SystemTeller, Any]) -> None:
    numpy = pytest.importorskip("numpy")
    teller, heard = told
    with teller.trial("a") as trial:
        trial["half"], trial["nan"] = numpy.float16(0.5), numpy.float64("nan")
        trial["count"], trial["flag"] = numpy.int64(7), numpy.bool_(True)
        trial["array"] = numpy.zeros(3)
    found = only(heard()).evidence
    assert found == {"half": 0.5, "nan": "nan", "count": 7, "flag": True, "array": "[0. 0. 0.]"}


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
    told: tuple[SystemTeller, Any], error: Exception, outcome: str, reason: str | None
) -> None:
    teller, heard = told
    with teller.trial("a") as trial:
        trial["before"] = 1
        raise error
    with teller.trial("b", control=True):
        pass
    first, second = msgspec.convert(heard().trials, list[SystemTrial])
    assert (first.name, first.outcome, first.evidence) == ("a", outcome, {"before": 1})
    assert first.reason == (first.reason if reason is None else reason)
    assert len(first.reason) <= telling.LENGTH
    assert (second.name, second.outcome, second.control) == ("b", "ok", True)


def test_a_trial_that_ends_its_process_stays_announced(told: tuple[SystemTeller, Any]) -> None:
    teller, heard = told
    with pytest.raises(SystemExit), teller.trial("a", control=True):
        raise SystemExit(3)
    found = heard()
    assert found.trials == [] and found.begun["name"] == "a" and found.begun["control"] is True


@pytest.mark.parametrize("number", [telling.TRIALS, telling.TRIALS + 1])
def test_the_number_of_trials_is_bounded(told: tuple[SystemTeller, Any], number: int) -> None:
    teller, heard = told
    for _ in range(number):
        with teller.trial("a"):
            pass
    found = heard()
    assert len(found.trials) == telling.TRIALS and found.full is (number > telling.TRIALS)


def test_what_one_process_tells_is_bounded(told: tuple[SystemTeller, Any]) -> None:
    teller, heard = told
    for _ in range(20):
        with teller.trial("a") as trial:
            for key in range(200):
                trial[f"k{key}"] = "x" * 1000
    found = heard()
    assert found.full and len(json.dumps(found.trials)) <= telling.TOTAL
    assert len(found.trials[0]["evidence"]) == telling.KEYS


GARBAGE = [
    b"no record",
    MARK + b"{",
    MARK + b"[]",
    MARK + b"null",
    MARK + b'"trial"',
    MARK + b"[" * 100_000,
    MARK + b'{"trial": 3}',
    MARK + b'{"trial": {"name": "a"}}',
    MARK + b'{"trial": {"name": "a", "outcome": "well"}}',
    MARK + b'{"trial": {"name": "a", "outcome": "ok", "seconds": NaN}}',
    MARK + b'{"trial": {"name": "a", "outcome": "ok", "seconds": -1}}',
    MARK + b'{"trial": {"name": "a", "outcome": "ok", "evidence": 5}}',
    MARK + b'{"begin": 5}',
    MARK + b'{"begin": {}}',
    MARK + b'{"run": 5}',
    MARK + b'{"run": {"outcome": "well", "system": 5, "gpus": "x", "trials": 1}}',
    MARK + b'{"run": {"framework_version": 5}}',
    MARK + b'{"run": {"framework_version": {"unavailable": "because"}}}',
    MARK + b'{"ready": "soon"}',
    MARK + b"\xff\xfe",
]


@pytest.mark.parametrize("record", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_not_heard(record: bytes) -> None:
    found = SystemHeard()
    found.hear(record + b"\n" + MARK + b'{"done": true}\n')
    assert found.run == {} and found.trials == [] and found.done


def test_a_record_s_unknown_fields_and_large_numbers_do_not_reach_the_snapshot() -> None:
    found = SystemHeard()
    found.hear(
        MARK
        + b'{"trial": {"name": "a\\u001b[0m", "outcome": "ok", "more": 1, "seconds": 1, "control": 1,'
        + b' "evidence": {"n": 1e999, "i": '
        + b"9" * 60
        + b', "d": {"a": [1]}, "l": [[1], {}], "0": null}}}\n'
    )
    trial = only(found)
    assert trial.name == "a [0m" and trial.control is False
    assert trial.evidence == {"n": "inf", "i": "9" * 60, "d": "{'a': [1]}", "l": ["[1]", "{}"]}


def test_a_rank_s_answer_is_bounded(told: tuple[SystemTeller, Any]) -> None:
    teller, heard = told
    teller.answer({"sum": Scalar(3.0), "list": [1, (2, float("nan"))], "words": "x" * 1000})
    assert heard().answer == {"sum": 3.0, "list": [1, [2, "nan"]], "words": "x" * 1000}
    with pytest.raises(ValueError, match=r"^its answer has \d+ bytes, and may have 1048576$"):
        teller.answer(["x" * 1000] * 2000)
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match=r"^its answer is nested more than 10 deep$"):
        teller.answer(deep)
