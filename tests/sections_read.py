"""Lists all checks, and which sections of a Snapshot each reads on all machines that the tests know."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "unit"))

from known_machines import machines, profile

from envcheck.checks import foreign
from envcheck.checks.registry import Check, all_checks
from envcheck.facts import recording
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.view import SnapshotView

FILE = Path(__file__).parents[1] / "envcheck" / "data" / "checks.csv"


def read_by(check: Check, snapshots: Iterable[Snapshot]) -> set[str]:
    found: set[str] = set()
    for snapshot in snapshots:
        view = SnapshotView(recording.recorded(snapshot), profile())
        _, read = recording.read_by(partial(foreign.take, check, view, []))
        found |= read & recording.SECTIONS
    return found


def table() -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["check", "area", "title", "sections"])
    for check in all_checks():
        sections = " ".join(sorted(read_by(check, machines().values())))
        writer.writerow([check.code, check.area, check.title, sections])
    return text.getvalue()
