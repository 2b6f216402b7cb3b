"""What a bench tells on its way: the row and its round, the rate so far, and how long it still takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from .. import safe_text
from .bench_words import OUTCOMES, number

# The runner's words for what a row is at.
_PHASES = {
    "import": "importing the framework",
    "build": "building the model",
    "warm-up": "warming up",
    "measure": "measuring",
    "losses": "training for its losses",
    "batch": "looking for the largest batch",
}


class BenchProgress:
    """Takes the runner's events: {"row", "phase", "round", "rounds", "rate", "left"}, any of which may lack.

    units: of each row's rate. seconds: that all of it takes, about; ``clock`` tells how many have gone.
    """

    def __init__(
        self,
        units: Mapping[str, str],
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._units = units
        self._seconds = seconds
        self._clock = clock
        self._began: float | None = None
        self._now: dict[str, Any] = {}
        self._left: tuple[float, float] | None = None  # as the runner said, and when
        self._order = {name: place for place, name in enumerate(units, 1)}
        self._rates: dict[str, float] = {}
        self._told: set[str] = set()

    def heard(self, record: Mapping[str, Any]) -> str:
        """Take an event; a line where with it a row is done, "" otherwise."""
        if self._began is None:
            self._began = self._clock()
        row = str(record.get("row") or "")
        rate, left = _number(record.get("rate")), _number(record.get("left"))
        if rate:
            self._rates[row] = rate
        if left is not None:
            self._left = (left, self._clock())
        if record.get("phase") == "over":
            self._told.add(row)
            return self._line(row, self._failed(record))
        self._now = dict(record)
        is_last = record.get("rounds") and record.get("round") == record.get("rounds")
        if row in self._told or not (is_last or record.get("phase") == "losses"):
            return ""
        self._told.add(row)
        if not is_last:
            return self._line(row, ", ".join(filter(None, ("its losses", self.left()))))
        return self._line(row, ", ".join(filter(None, (self._rate(row) or "no rate", self.left()))))

    def text(self) -> str:
        """One line of what goes on; "" before anything does."""
        row = str(self._now.get("row") or "")
        if not row:
            return ""
        phase = str(self._now.get("phase") or "")
        told = [self._line(row, ""), _PHASES.get(phase, phase), self._round()]
        return safe_text.one_line(", ".join(filter(None, (*told, self._rate(row), self.left()))))

    def left(self) -> str:
        """ "about 3 min left"; "" where nobody knows, or it is over any moment."""
        if self._left is not None:
            seconds = self._left[0] - (self._clock() - self._left[1])
        elif self._began is not None and self._seconds > 0:
            seconds = self._seconds - (self._clock() - self._began)
        else:
            return ""
        if seconds < 1:
            return ""
        return f"about {duration(seconds)} left"

    def _failed(self, record: Mapping[str, Any]) -> str:
        outcome = str(record.get("outcome") or "")
        why = ": ".join(
            filter(None, (OUTCOMES.get(outcome, outcome), str(record.get("reason") or "")))
        )
        return safe_text.one_line(", ".join(filter(None, (why, self.left()))))

    def _line(self, row: str, told: str) -> str:
        place = self._order.get(row)
        number_of = f"row {place} of {len(self._order)}: " if place else ""
        return f"{number_of}{row}" + (f": {told}" if told else "")

    def _round(self) -> str:
        this, all_ = self._now.get("round"), self._now.get("rounds")
        return f"round {this} of {all_}" if this and all_ else ""

    def _rate(self, row: str) -> str:
        rate = self._rates.get(row)
        return f"{number(rate)} {self._units.get(row, 'samples/s')}" if rate else ""


def duration(seconds: float) -> str:
    """ "40 s", "3 min", "2 h 5 min" """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _number(value: object) -> float | None:
    """What an event holds for a number; None for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value < 1e12 else None
