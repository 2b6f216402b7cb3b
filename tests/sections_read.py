"""Records which sections of a Snapshot each check reads, on all machines that the tests know."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "unit"))

from known_machines import machines, profile

from envcheck.checks import foreign
from envcheck.checks.registry import Check, all_checks
from envcheck.facts.recording import recorded
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.view import SnapshotView

FILE = Path(__file__).parents[1] / "envcheck" / "checks" / "sections_read.csv"


def read_by(check: Check, snapshots: Iterable[Snapshot]) -> set[str]:
    found: set[str] = set()
    for snapshot in snapshots:
        with recorded(snapshot) as (recording, read):
            foreign.take(check, SnapshotView(recording, profile()), [])
        found |= read
    return found


def table() -> str:
    lines = ["check,sections"]
    for check in all_checks():
        lines.append(f"{check.code},{' '.join(sorted(read_by(check, machines().values())))}")
    return "\n".join(lines) + "\n"
