"""A worker's parent on a made-up clock and child: messages, limits, and what is said of each end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envcheck.collector.runtime.process import Result
from envcheck.collector.worker import messages
from envcheck.collector.worker.parent import Limits, Worker


class Child:
    """Takes messages from a list, and ends when it is stopped or told to."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.result: Result | None = None

    def send(self, *sent: Any) -> None:
        self.messages += sent

    def new_stdout(self) -> bytes:
        lines = [messages.MARK.decode() + json.dumps(one) for one in self.messages]
        self.messages = []
        return ("noise\n" + "\n".join(lines) + "\n").encode()

    def end(self, outcome: str = "exited", code: int | None = 0, **more: Any) -> None:
        self.result = Result(["x"], outcome, code, b"", b"words\n", 1.0, **more)

    def stop(self) -> None:
        self.end("stopped", None)

    def poll(self) -> Result | None:
        return self.result


class World:
    def __init__(self, **limits: Any) -> None:
        self.now = 100.0
        self.child = Child()
        self.taken: list[Any] = []
        self.worker = Worker(self.child, Limits(**limits), self.take, clock=lambda: self.now)

    def take(self, kind: str, value: Any, key: str) -> None:
        if value == "malformed":
            raise KeyError(value)
        self.taken.append((kind, value, key))

    def after(self, seconds: float, *sent: Any) -> bool:
        self.now += seconds
        self.child.send(*sent)
        return self.worker.step()

    def end(self, *arguments: Any, **more: Any) -> tuple[str, str]:
        self.child.end(*arguments, **more)
        while self.worker.step():
            pass
        return self.worker.outcome, self.worker.reason


BEGIN: dict[str, Any] = {"begin": {"a": 1}}


@pytest.mark.parametrize(
    ("limits", "steps"),
    [
        ({"start": 10}, [(9, []), (2, [])]),
        ({"start": 10, "stage": 5}, [(9, [BEGIN]), (4, [{"result": 1}]), (6, [])]),
        ({"total": 10, "stage": 7}, [(1, [BEGIN]), (6, [{"result": 1}]), (5, [{"result": 2}])]),
        (
            {"stage": 5, "total": 9, "stages": {"compile": 30}},
            [
                (1, [BEGIN, {"stage": "compile", "of": "a"}]),
                (20, [{"result": 1, "of": "a"}, {"stage": "compile", "of": "b"}]),
                (11, []),
            ],
        ),
    ],
)
def test_past_a_limit_it_is_stopped(limits: dict[str, Any], steps: list[Any]) -> None:
    world = World(**limits)
    for seconds, text in steps[:-1]:
        assert world.after(seconds, *text)
        assert world.child.result is None
    world.after(steps[-1][0], *steps[-1][1])
    assert world.child.result is not None
    world.worker.step()
    assert world.worker.outcome == "timeout"


@pytest.mark.parametrize(
    ("result", "ending", "outcome", "words"),
    [
        ([], ("exited", -9), "crashed", "signal 9"),
        ([{"done": {"outcome": "not-run", "reason": "no GPU"}}], ("exited", 4), "not-run", "no GPU"),
        ([{"done": None}], ("exited", 0), "ok", ""),
        ([], ("timeout", None), "timeout", "not done"),
        ([], ("not-started", None), "error", "could not be started"),
    ],
)  # fmt: skip
def test_each_end_has_its_outcome(result: Any, ending: Any, outcome: str, words: str) -> None:
    world = World()
    world.after(1, BEGIN, {"stage": "rate", "of": "fp16"}, *result)
    found = world.end(*ending, stuck={"pid": 7})
    assert found[0] == outcome and words in found[1]
    assert world.worker.stuck == {"pid": 7}
    assert world.worker.stage == (None if outcome == "ok" else ("rate", "fp16"))
