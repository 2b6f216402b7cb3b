"""What the doctor finds on every machine that the tests know: outcome, cause and subjects of each check.

    .venv/bin/python tests/golden.py            compare with tests/golden.csv
    .venv/bin/python tests/golden.py --write    write it anew
    .venv/bin/python tests/golden.py --faults   the same for tests/faulty (minutes; it needs namespaces)

A line that differs is a mended mistake that its commit
names, or a bug.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "unit"), str(HERE / "functional")]

FIELDS = ("machine", "code", "outcome", "level", "cause", "subjects")

Row = tuple[str, ...]


def judged_machines() -> list[Row]:
    from known_machines import machines

    from envcheck.checks.engine import diagnose
    from envcheck.reports.model import build

    rows: list[Row] = []
    for name, snapshot in machines().items():
        rows += rows_of(name, msgspec.to_builtins(build(snapshot, diagnose(snapshot))))
    return rows


def faulty_machines() -> list[Row]:
    from faulty import run, themes

    faults = themes.all_faults()
    reports = run.side_by_side(lambda one: run.report(one.machine()), faults)
    return [
        row
        for fault, report in zip(faults, reports, strict=True)
        for row in rows_of(fault.name, report)
    ]


def rows_of(machine: str, report: dict[str, Any]) -> Iterator[Row]:
    """The rows of one report: those of each problem, and one with the codes of all that passed."""
    passed = []
    for result in report["results"]:
        outcome, because = result["outcome"], result.get("consequence_of", "")
        if outcome == "pass":
            passed.append(result["code"])
        if outcome in ("pass", "skipped") and not because:
            continue
        outcome = f"because of {because}" if because else outcome
        found = {
            (
                one["level"],
                one["cause"],
                ", ".join(dict.fromkeys(about["text"] for about in one.get("subjects", ()))),
            )
            for one in result.get("findings", ())
        }
        for level, cause, subject in sorted(found) or [("", "", "")]:
            yield machine, result["code"], outcome, level, cause, subject
    yield machine, "", "pass", "", "", " ".join(passed)


def text(rows: Iterable[Row]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([FIELDS, *rows])
    return written.getvalue()


def differences(before: Iterable[Row], after: Iterable[Row]) -> list[str]:
    """Lines that only one of them has, "-" or "+" before each."""
    old, new = set(before), set(after)
    shown = [f"- {','.join(row)}" for row in sorted(old - new)]
    return shown + [f"+ {','.join(row)}" for row in sorted(new - old)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--faults", action="store_true")
    arguments = parser.parse_args()
    file = HERE / ("golden_faults.csv" if arguments.faults else "golden.csv")
    rows = faulty_machines() if arguments.faults else judged_machines()
    if arguments.write:
        file.write_text(text(rows), encoding="utf-8")
        return 0
    with file.open(encoding="utf-8", newline="") as lines:
        before = [tuple(row) for row in csv.reader(lines)][1:]
    found = differences(before, rows)
    print("\n".join(found) or f"{len(rows)} lines, all as before")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
