"""What a bench tells on its way: the row and its round, and the rate so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .. import safe_text
from .bench_words import OUTCOMES, number

# The runner's words for what a row is at.
_PHASES = {
    "import": "importing the framework",
    "build": "building the model",
    "warm-up": "warming up",
    "evidence": "looking at its graph",
    "measure": "measuring",
}


class BenchProgress:
    """Takes the runner's events (collector/bench/runner.py), any of whose fields may lack. units: of each
    row's rate, in their order."""

    def __init__(self, units: Mapping[str, str], rounds: int) -> None:
        self._units = units
        self._rounds = rounds
        self._order = {name: place for place, name in enumerate(units, 1)}
        self._now: Mapping[str, Any] = {}
        self._rate = ""

    def take(self, event: Mapping[str, Any]) -> str:
        """A line where with this event a row is over, "" otherwise."""
        row = str(event.get("row") or "")
        if row != self._now.get("row"):
            self._rate = ""
        rate = event.get("rate")
        if isinstance(rate, int | float) and math.isfinite(rate) and 0 < rate < 1e12:
            self._rate = f"{number(rate)} {self._units.get(row, 'samples/s')}"
        self._now = event
        if event.get("phase") != "over":
            return ""
        outcome = str(event.get("outcome") or "")
        words = (OUTCOMES.get(outcome, outcome), str(event.get("reason") or ""))
        ended = self._rate or "no rate" if outcome == "ok" else ": ".join(filter(None, words))
        return self._line(row, f": {ended}" if ended else "")

    def text(self) -> str:
        """One line of what goes on; "" before anything does."""
        row = str(self._now.get("row") or "")
        phase, done = str(self._now.get("phase") or ""), self._now.get("round")
        measuring = phase == "measure" and isinstance(done, int)
        round_ = f"round {done + 1} of {self._rounds}" if measuring else ""  # type: ignore[operator]
        parts = filter(None, (_PHASES.get(phase, phase), round_, self._rate))
        return self._line(row, "".join(f", {part}" for part in parts)) if row else ""

    def _line(self, row: str, more: str) -> str:
        place = self._order.get(row)
        number_of = f"row {place} of {len(self._order)}: " if place else ""
        return safe_text.one_line(number_of + row + more)
