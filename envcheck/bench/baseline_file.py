"""Reads `--baseline FILE`: a Snapshot with a bench, or a bench's JSON."""

from __future__ import annotations

import msgspec

from ..exit_codes import UsageError
from ..facts import snapshot as snapshots
from .baseline import Baseline
from .records import BenchResult
from .results import results


class _Told(msgspec.Struct):
    """A bench's JSON: the result itself, or under this name."""

    result: BenchResult


def read(data: bytes, name: str) -> Baseline:
    """Raises UsageError for what is neither, and for a bench in which nothing was measured."""
    found = _of_json(data) or _of_snapshot(data, name)
    rows = [row for row in found.rows if row.rate is not None]
    if not rows:
        raise UsageError(f"--baseline {name}: no row of it was measured")
    return Baseline(name=name, rows=rows)


def _of_json(data: bytes) -> BenchResult | None:
    try:
        return msgspec.json.decode(data, type=BenchResult)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return msgspec.json.decode(data, type=_Told).result
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _of_snapshot(data: bytes, name: str) -> BenchResult:
    try:
        found = results(snapshots.load(data))
    except snapshots.SnapshotError as error:
        raise UsageError(
            f"--baseline {name}: neither a Snapshot nor the JSON of a bench: {error}"
        ) from None
    if found is None:
        raise UsageError(
            f"--baseline {name}: this Snapshot has no bench",
            hint="envcheck bench --save FILE keeps one that has",
        )
    return found
