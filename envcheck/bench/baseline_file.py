"""Reads `--baseline FILE`: a Snapshot with a bench."""

from __future__ import annotations

from ..exit_codes import UsageError
from ..facts import snapshot as snapshots
from ..facts.base import NOT_COLLECTED, known
from ..facts.bench import BenchRow, RowRun
from ..facts.snapshot import Snapshot
from .baseline import Baseline, held_against
from .places import frameworks, style
from .records import RowResult
from .results import cpu_of, gpus_of, results


def read(data: bytes, name: str) -> Baseline:
    """Raises UsageError for what is no Snapshot with a bench, and where nothing was measured."""
    try:
        found = results(snapshots.load(data))
    except snapshots.SnapshotError as error:
        raise UsageError(f"--baseline {name}: no Snapshot: {error}") from None
    if found is None:
        raise UsageError(
            f"--baseline {name}: this Snapshot has no bench",
            hint="envcheck bench --save FILE writes one that has",
        )
    rows = [row for row in found.rows if row.rate is not None]
    if not rows:
        raise UsageError(f"--baseline {name}: no row of it was measured")
    return Baseline(name=name, rows=rows)


def refuse_other(baseline: Baseline, rows: list[BenchRow], snapshot: Snapshot) -> None:
    """Raises UsageError for a baseline of which no row can match what is planned, before it is run."""
    if rows:
        held_against([_as_planned(row, snapshot) for row in rows], baseline)


def _as_planned(row: BenchRow, snapshot: Snapshot) -> RowResult:
    there = gpus_of(snapshot)
    found = [one for one in frameworks(snapshot.target) if style(one) == row.style]
    version = found[0].version if found else NOT_COLLECTED
    return RowResult(
        run=RowRun(row=row, outcome="not-run", framework_version=version),
        gpu_names=[known(there[one].name) or "" if one in there else "" for one in row.gpus],
        cpu="" if row.gpus else cpu_of(snapshot),
    )
