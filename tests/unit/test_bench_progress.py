"""What a bench tells on its way, by the runner's events."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.reports.bench_progress import BenchProgress, duration


def progress() -> BenchProgress:
    return BenchProgress({"resnet50 fp32 256": "images/s", "bert amp": "sequences/s"}, rounds=5)


def test_a_round_with_its_rate() -> None:
    shown = progress()
    assert shown.text() == ""
    shown.take({"row": "resnet50 fp32 256", "phase": "measure", "round": 1, "rate": 402.3})
    assert shown.text() == ("row 1 of 2: resnet50 fp32 256, measuring, round 2 of 5, 402 images/s")
    shown.take({"row": "bert amp", "phase": "build", "rate": None})
    assert shown.text() == "row 2 of 2: bert amp, building the model"


def test_a_row_that_is_over_is_a_line_with_its_rate_or_its_reason() -> None:
    shown = progress()
    event: dict[str, Any] = {"row": "resnet50 fp32 256"}
    assert shown.take({**event, "phase": "measure", "round": 4, "rate": 402.0}) == ""
    line = shown.take({**event, "phase": "over", "outcome": "ok", "reason": ""})
    assert line == "row 1 of 2: resnet50 fp32 256: 402 images/s"
    crashed = {**event, "phase": "over", "outcome": "crashed", "reason": "it\x1b[31m died"}
    line = shown.take(crashed)
    assert line.startswith("row 1 of 2: resnet50 fp32 256: crashed: it") and "\x1b" not in line


@pytest.mark.parametrize(
    "value", [None, "", "x", -1, 1e300, float("nan"), float("inf"), [], {}, True]
)
def test_no_event_breaks_it(value: Any) -> None:
    shown = progress()
    for name in ("row", "phase", "round", "rate", "outcome", "reason"):
        for event in ({"row": "bert amp", name: value}, {name: value}):
            assert "\n" not in shown.take({"phase": "over", **event})
            assert "\n" not in shown.text()


def test_durations() -> None:
    lasting = [duration(seconds) for seconds in (4, 89, 200, 5400, 7500)]
    assert lasting == ["4 s", "89 s", "3 min", "1 h 30 min", "2 h 5 min"]
