"""A baseline: what a machine that was well did in the same rows. Pure; baseline_file reads one."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..exit_codes import UsageError
from ..facts.base import known
from ..facts.bench import RowRun
from .peers import on_any_gpu
from .records import ReferenceRate, RowResult


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # of the file
    rows: list[RowResult]


def held_against(rows: list[RowResult], baseline: Baseline) -> dict[str, ReferenceRate]:
    """Of each row that the baseline has, too, what it did there: {row's name: figure}.

    Raises UsageError where it has none of them: it is another product's, or another version's.
    """
    pairs = [(one, _match(one, baseline.rows)) for one in rows]
    found = {
        one.run.row.name: ReferenceRate(
            rate=other.rate.median, kind="baseline", about=other.run.row.name, source=baseline.name
        )
        for one, other in pairs
        if other is not None and other.rate is not None
    }
    if not found and rows:
        raise UsageError(f"--baseline {baseline.name}: {_why_none(rows, baseline)}")
    return found


def _match(one: RowResult, rows: Iterable[RowResult]) -> RowResult | None:
    for other in rows:
        same = _products(one) == _products(other) and _version(one.run) == _version(other.run)
        if same and _same_row(one, other):
            return other
    return None


def _same_row(one: RowResult, other: RowResult) -> bool:
    a, b = one.run.row, other.run.row
    same = on_any_gpu(a) == on_any_gpu(b)
    return same and a.together == b.together and len(a.gpus) == len(b.gpus)


def _products(one: RowResult) -> list[str]:
    return sorted(one.gpu_names) or [one.cpu or "a CPU"]


def _version(run: RowRun) -> str:
    return known(run.framework_version) or ""


def _why_none(rows: list[RowResult], baseline: Baseline) -> str:
    same = [(one, other) for one in rows for other in baseline.rows if _same_row(one, other)]
    if not same:
        return "it has none of the rows that were run"
    mine, theirs = same[0]
    if _products(mine) != _products(theirs):
        return f"it is of {_products(theirs)[0]}, and these rows ran on {_products(mine)[0]}"
    return (
        f"it is of {theirs.run.row.style} {_version(theirs.run) or 'without a version'}, and these rows"
        f" ran in {_version(mine.run) or 'one without a version'}"
    )
