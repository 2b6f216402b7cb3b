"""The bars of a bench's rows: how fast each was, with the figure that it is held against, and its memory."""

from __future__ import annotations

from collections.abc import Mapping

from ...bench.records import RowResult
from ...facts.base import known
from .. import bench_table as tables
from .. import bench_words as words
from ..bench_table import BenchTable
from ..plain import WORDS
from ..plots.bars import PlotBar, bars

_COLOURS = {"fail": 4, "warn": 1}
_MEMORY = {"tensors": "tensors_mib", "pool": "pool_mib", "process": "process_mib"}


def rates(table: BenchTable, number: int, gpus: Mapping[str, str]) -> str:
    """How fast each row was, with the figure that it is held against."""
    rows = []
    kinds: dict[str, None] = {}
    for result in table.results:
        reference, rate = words.fitting(result), result.rate
        if reference is not None:
            kinds[tables.KINDS[reference.kind]] = None
        rows.append(
            PlotBar(
                label=_label(result, table, gpus),
                value=None if rate is None else rate.median,
                words=_words(result),
                least=None if rate is None or rate.repetitions < 2 else rate.least,
                most=None if rate is None or rate.repetitions < 2 else rate.most,
                mark=None if reference is None else reference.rate,
                colour=_COLOURS.get(result.verdict, 0),
            )
        )
    return bars(
        f"rates-{number}", table.unit.capitalize(), table.unit, rows, mark=" or ".join(kinds)
    )


def memory(table: BenchTable, number: int, gpus: Mapping[str, str]) -> str:
    """The most that each row took, by who counted."""
    rows = []
    for result in table.results:
        label = f"{_label(result, table, gpus)}: "
        for place, (kind, field) in enumerate(_MEMORY.items()):
            mib = known(getattr(result.run.memory, field))
            if mib is not None:
                bar = PlotBar(label=label + kind, value=mib / 1024, colour=(0, 5, 7)[place])
                rows.append(bar)
                label = ""
    return bars(f"memory-{number}", "Memory", "GiB", rows) if rows else ""


def _label(result: RowResult, table: BenchTable, gpus: Mapping[str, str]) -> str:
    """What tells a row from the others of its table."""
    row = result.run.row
    amp = words.amp_of(row)
    told = [
        {"no": "", "yes": "AMP"}.get(amp, amp),
        words.precision_of(row),
        words.COMPILERS[row.style] if row.compiled else "",
        "TF-TRT" if row.tensorrt else "",
        row.data if row.data != "synthetic" else "",
        f"batch {row.batch:,}",
    ]
    if any(column.key == "gpu" for column in table.columns):
        told.append(f"GPU {words.where(row, gpus)}")
    return " ".join(filter(None, told))


def _words(result: RowResult) -> str:
    if result.rate is None:
        return words.outcome_of(result)
    told = [words.number(result.rate.median)]
    told += filter(None, [words.share_of(result)])
    if result.verdict in ("warn", "fail"):
        told.append(WORDS[result.verdict])
    return ", ".join(told)
