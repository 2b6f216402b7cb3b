"""Clocks that are off. Pure."""

from __future__ import annotations

from statistics import median

from .judged import Judged

_CLOCK = 5.0  # seconds


def clocks(judged: Judged) -> None:
    """Of each machine the median of what the others say; first the one of which most is known. What it
    says of others then counts no more."""
    wrong: set[str] = set()
    while True:
        ahead = _ahead(judged, wrong)
        off = [
            (len(seen), abs(median(seen)), name)
            for name, seen in ahead.items()
            if abs(median(seen)) > _CLOCK
        ]
        if not off or len(ahead) < 3:
            return
        name = max(off)[2]
        wrong.add(name)
        offset = median(ahead[name])
        side = "ahead of" if offset > 0 else "behind"
        seconds = f"{abs(offset):.0f}"
        judged.put("clock-off", [name], "timedatectl", machine=name, seconds=seconds, side=side)


def _ahead(judged: Judged, wrong: set[str]) -> dict[str, list[float]]:
    """{machine: seconds that its clock is ahead, by each of the others}, without those that are wrong."""
    found: dict[str, list[float]] = {}
    for pair in judged.pairs.values():
        if wrong.intersection(pair.machines):
            continue
        for attempt in pair.attempts:
            for name, end in attempt.ends.items():
                if end.offset is not None and end.rtt is not None and end.rtt < _CLOCK / 2:
                    found.setdefault(pair.other(name), []).append(end.offset)
                    found.setdefault(name, []).append(-end.offset)
    return found
