"""Lines of Python and statements of each room, beside its budget.

    .venv/bin/python benchmarks/sizes.py [--write]

`budgets.csv` has each room's budget and, where the budget is not met yet, a ceiling: today's lines, which the
room must not exceed. `--write` lowers the ceilings to the current lines; it never raises one.
"""

from __future__ import annotations

import argparse
import ast
import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
BUDGETS = REPOSITORY / "benchmarks" / "budgets.csv"


@dataclass(frozen=True)
class Room:
    """A row of budgets.csv. `ceiling` is None where the budget is met."""

    name: str
    paths: tuple[str, ...]
    budget: int
    ceiling: int | None

    def files(self) -> Iterator[Path]:
        for pattern in self.paths:
            for path in REPOSITORY.glob(pattern):
                yield from [path] if path.is_file() else path.rglob("*.py")  # follows no link

    def lines(self) -> int:
        return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in self.files())

    def statements(self) -> int:
        return sum(
            isinstance(node, ast.stmt)
            for path in self.files()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )

    @property
    def limit(self) -> int:
        return self.budget if self.ceiling is None else self.ceiling


def rooms() -> list[Room]:
    with BUDGETS.open(encoding="utf-8", newline="") as file:
        return [
            Room(
                row["room"],
                tuple(row["paths"].split()),
                int(row["budget"]),
                int(row["ceiling"]) if row["ceiling"] else None,
            )
            for row in csv.DictReader(file)
        ]


def write(measured: list[Room]) -> None:
    """Lower each ceiling to today's lines, and drop it where the budget is met."""
    with BUDGETS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["room", "paths", "budget", "ceiling"])
        for room in measured:
            lines = room.lines()
            ceiling = "" if lines <= room.budget else min(lines, room.ceiling or lines)
            writer.writerow([room.name, " ".join(room.paths), room.budget, ceiling])


def _main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="lower the ceilings to today's lines")
    if parser.parse_args().write:
        write(rooms())
    print(f"{'lines':>8} {'budget':>8} {'over':>7} {'statements':>11}  room")
    for room in rooms():
        lines = room.lines()
        over = f"{lines - room.budget:+,}" if lines > room.budget else ""
        print(f"{lines:8,} {room.budget:8,} {over:>7} {room.statements():11,}  {room.name}")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
