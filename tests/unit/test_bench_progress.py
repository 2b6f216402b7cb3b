"""What a bench tells on its way, by the runner's events on a made-up clock."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.reports.bench_progress import BenchProgress, duration


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def progress(seconds: float = 300.0) -> tuple[BenchProgress, Clock]:
    clock = Clock()
    units = {"resnet50 fp32 256": "images/s", "bert amp": "sequences/s"}
    return BenchProgress(units, seconds, clock), clock


def test_nothing_is_said_before_anything_runs() -> None:
    assert progress()[0].text() == ""


def test_a_round_with_its_rate_and_how_long_still() -> None:
    told, clock = progress()
    told.heard(
        {"row": "resnet50 fp32 256", "phase": "measure", "round": 2, "rounds": 5, "rate": 402.3}
    )
    clock.now += 120
    assert told.text() == (
        "row 1 of 2: resnet50 fp32 256, measuring, round 2 of 5, 402 images/s, about 3 min left"
    )


def test_what_the_runner_says_is_left_counts_down() -> None:
    told, clock = progress()
    told.heard({"row": "bert amp", "left": 61.0})
    clock.now += 20
    assert told.left() == "about 41 s left"
    clock.now += 100
    assert told.left() == ""


def test_a_row_is_told_once_when_it_is_done() -> None:
    told, _ = progress()
    event: dict[str, Any] = {"row": "resnet50 fp32 256", "rounds": 2, "rate": 402.0}
    assert told.heard({**event, "round": 1}) == ""
    line = told.heard({**event, "round": 2})
    assert line == "row 1 of 2: resnet50 fp32 256: 402 images/s, about 5 min left"
    assert told.heard({**event, "round": 2}) == ""
    assert told.heard({"row": "bert amp", "phase": "losses"}).startswith(
        "row 2 of 2: bert amp: its losses"
    )


@pytest.mark.parametrize(
    "odd", [None, "", "x", -1, 1e300, float("nan"), float("inf"), [], {}, True]
)
def test_no_event_breaks_it(odd: Any) -> None:
    told, _ = progress()
    for name in ("row", "phase", "round", "rounds", "rate", "left"):
        told.heard({"row": "bert amp", name: odd})
        told.heard({name: odd})
        assert "\n" not in told.text()


def test_durations() -> None:
    assert [duration(s) for s in (4, 89, 200, 5400, 7500)] == [
        "4 s",
        "89 s",
        "3 min",
        "1 h 30 min",
        "2 h 5 min",
    ]


def test_a_row_that_fails_is_told_once_with_its_reason() -> None:
    told, _ = progress()
    told.heard({"row": "bert amp", "phase": "build"})
    event = {"row": "resnet50 fp32 256", "phase": "over", "outcome": "crashed", "left": 20.0}
    line = told.heard({**event, "reason": "it\x1b[31m died"})
    assert line.startswith("row 1 of 2: resnet50 fp32 256: crashed: it") and "\x1b" not in line
    assert line.endswith("died, about 20 s left") and "building the model" in told.text()
    odd = told.heard({"row": "bert amp", "phase": "over", "outcome": 7, "reason": None})
    assert odd.startswith("row 2 of 2: bert amp: 7")
