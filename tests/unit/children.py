"""Processes that follow a script, by a clock of their own: as process.Child, and none is started."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from envcheck.collector.runtime.process import Result
from envcheck.collector.worker import messages


class Clock:
    """Seconds, which pass by pauses alone."""

    def __init__(self, step: float = 0.25) -> None:
        self.now, self.step = 100.0, step

    def __call__(self) -> float:
        return self.now

    def pause(self, _seconds: float) -> None:
        self.now += self.step


class Child:
    """script: (seconds after its start, what it prints: bytes, or messages). end: (seconds, exit status);
    None for one that runs until it is stopped. stuck: what is left of it then."""

    pids = itertools.count(100)

    def __init__(
        self,
        clock: Clock,
        script: Sequence[tuple[float, Any]],
        end: tuple[float, int] | None,
        stderr: bytes = b"",
        stuck: Any = None,
    ) -> None:
        self.clock, self.began, self.script, self.end = clock, clock.now, list(script), end
        self.stderr, self.stuck, self.pid = stderr, stuck, next(self.pids)
        self.stopped: float | None = None
        self.result: Result | None = None

    @property
    def age(self) -> float:
        return (self.clock.now if self.stopped is None else self.stopped) - self.began

    def new_stdout(self) -> bytes:
        due = [printed for at, printed in self.script if at <= self.age]
        del self.script[: len(due)]
        return b"".join(
            one if isinstance(one, bytes) else b"".join(map(messages.encode, one)) for one in due
        )

    def stop(self) -> None:
        self.stopped = self.stopped or self.clock.now

    def poll(self) -> Result | None:
        if self.stopped is not None:
            self.result = Result(["x"], "stopped", None, b"", b"", self.age, self.stuck)
        elif self.end is not None and self.age >= self.end[0]:
            self.result = Result(["x"], "exited", self.end[1], b"", self.stderr, self.age)
        return self.result
