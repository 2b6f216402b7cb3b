"""What somebody sees on stderr while envcheck works: what it does now, for how long, and how far it is.

On a terminal the current task is a line that moves, and stays behind with its time when it is done. Elsewhere
each task is a line when it begins, and a long download a line a minute.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from ..reports.progress import StatusLine, elapsed, looking, with_time
from . import messages

if TYPE_CHECKING:
    from ..install.plan.models import AnyPlan, Step, StepName

F = TypeVar("F", bound="Terminal")

_A_LINE_EVERY = 60.0  # seconds, of a download where nobody sees the line that moves


class Terminal:
    """A context manager; all of it goes to stderr. Safe for threads. quiet: nothing is shown."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._line = StatusLine(sys.stderr)
        self._lock = threading.RLock()
        self._task = ""
        self._since = self._reported = 0.0
        self._detail = ""
        self._steps: list[Step] = []

    def __enter__(self: F) -> F:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()
        self._line.__exit__(kind, error, trace)

    def say(self, task: str) -> None:
        """What is done from here on, or was done a moment ago."""
        if self._quiet:
            return
        with self._lock:
            self.clear()
            self._task, self._detail = task, ""
            self._since = self._reported = time.monotonic()
            if self._line.live:
                self._line.show(self._text)
            else:
                messages.say(task)

    def planned(self, plan: AnyPlan) -> None:
        """The plan whose steps ``step`` counts."""
        self._steps = plan.steps

    def step(self, name: StepName) -> None:
        """The step of the plan that begins."""
        for number, step in enumerate(self._steps, 1):
            if step.name == name:
                self.say(f"step {number} of {len(self._steps)}: {step.sentence}")

    def progress(self, detail: str) -> None:
        """How far the current task is."""
        with self._lock:
            now = time.monotonic()
            self._detail = detail
            if self._task and not self._line.live and now - self._reported >= _A_LINE_EVERY:
                self._reported = now
                if not self._quiet:
                    messages.say(f"{self._task}: {detail}")

    def looking(self, running: list[str], done: int, total: int) -> None:
        with self._lock:
            self._detail = looking(running, done, total)

    def clear(self) -> None:
        """Take the line that moves away, so that something can be written; what was done stays."""
        with self._lock:
            self._line.clear()
            if self._task and self._line.live:
                messages.say(f"{self._task}{elapsed(self._since)}")
            self._task = ""

    def _text(self, columns: int) -> str:
        return with_time(self._task, self._since, columns, detail=self._detail)
