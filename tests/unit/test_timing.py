"""Summaries, and the plan and bookkeeping of the alternating timing, on a clock that the test turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from envcheck.collector.kernels import timing


class Gpu:
    """A driver whose events are moments of the work queued so far; all of it is done when it is asked."""

    def __init__(self, answers: tuple[bool, ...] = ()) -> None:
        self.time = 0.0
        self.started: list[str] = []
        self.events: dict[int, float] = {}
        self.made = 0
        self.answers = list(answers)  # to the first questions whether an event is done

    def work(self, name: str, seconds: float) -> Callable[[], None]:
        def start() -> None:
            self.started.append(name)
            self.time += seconds

        return start

    def event(self) -> int:
        self.made += 1
        return self.made

    def record(self, event: int) -> None:
        self.events[event] = self.time

    def wait(self, event: int) -> None:
        assert event in self.events

    def query(self, event: int) -> bool:
        assert event in self.events
        return self.answers.pop(0) if self.answers else True

    def elapsed(self, first: int, second: int) -> float:
        return self.events[second] - self.events[first]

    def destroy_event(self, event: int) -> None:
        del self.events[event]


def test_product_and_reference_alternate() -> None:
    gpu = Gpu()
    result = timing.measure(gpu, gpu.work("P", 1 / 64), gpu.work("R", 1 / 16))
    assert (result["reference_seconds"], result["seconds"]) == (1 / 16, 1 / 64)
    assert (result["runs"], result["spread"]) == (12, 1.0)
    assert "".join(gpu.started) == "PPRR" + "RPPPP" * 3
    assert gpu.events == {}  # none is left behind


def test_what_is_sampled_is_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the reference is done, no sample is taken; after the product is, none either."""
    done: set[Any] = set()
    order = iter(["before", "start", "end"])
    monkeypatch.setattr(timing.time, "sleep", lambda _seconds: done.add(next(order)))

    class Driver:
        def query(self, event: Any) -> bool:
            return event in done

    seen: list[set[Any]] = []

    class Recorder:
        def sample(self) -> None:
            seen.append(set(done))

    timing._watch(Driver(), [["start", "end"]], Recorder())
    assert seen == [{"before", "start"}]
