"""What the doctor made of the cases when it first saw them, as somebody read its reports."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .score import Seen

SETS = {"first": "", "second": "second/"}  # by the folder that each is in
KINDS = {"reports": "public reports", "faults": "faults", "healthy": "machines without a fault"}


@dataclass(frozen=True)
class Judged:
    """A row: y, n, or p for partly. misled: y where a failure of another cause stood there. healthy: y
    where the verdict was "healthy"."""

    kind: str
    case: str
    seen: str
    cause: str
    remedy: str
    misled: str
    healthy: str
    words: str


@dataclass(frozen=True)
class Total:
    """Of a kind of cases: how many were seen, named, and so on; and what a program counts today."""

    set: str
    name: str
    cases: int
    seen: int
    cause: int
    remedy: int
    misled: int
    healthy: int
    cause_now: int
    remedy_now: int


_COUNTED = ("seen", "cause", "remedy", "misled", "healthy")


def folder(name: str, kind: str) -> str:
    """Where the cases of a set are, below tests/first_sight."""
    return SETS[name] + ("reports" if kind == "reports" else "faults")


def judged(name: str) -> list[Judged]:
    """A set's table; empty until it is judged."""
    table = Path(__file__).parent / SETS[name] / "judged.csv"
    if not table.is_file():
        return []
    with table.open(newline="") as file:
        return [Judged(**row) for row in csv.DictReader(file)]


def totals(name: str, now: Mapping[tuple[str, str], Seen]) -> list[Total]:
    """A cause or a remedy counts where it is all there. now: by the cases' folders and names."""
    rows, found = judged(name), []
    for kind, title in KINDS.items():
        of_it = [row for row in rows if row.kind == kind]
        if of_it:
            counts = [sum(getattr(row, key) == "y" for row in of_it) for key in _COUNTED]
            today = [now[folder(name, kind), row.case] for row in of_it]
            named, remedied = sum(s.named for s in today), sum(s.remedied for s in today)
            found.append(Total(name, title, len(of_it), *counts, named, remedied))
    return found
