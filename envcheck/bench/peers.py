"""The same row on GPUs of one name: each beside the others, and all of them as one job. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

import msgspec

from ..facts.bench import BenchRow
from .places import BenchGpu
from .records import ReferenceRate, RowResult, ScalingResult
from .verdict import WARN


def on_any_gpu(row: BenchRow) -> BenchRow:
    """The row without what differs from one GPU to the next."""
    return msgspec.structs.replace(row, name="", group="", gpus=[], together="", memory_mib=0)


def peer_reference(one: RowResult, rows: Iterable[RowResult]) -> ReferenceRate | None:
    """The median of the other GPUs of that name in the same row; None where there is none."""
    if one.run.row.together or len(one.run.row.gpus) != 1 or one.rate is None:
        return None
    others = [
        other
        for other in rows
        if other is not one
        and other.rate is not None
        and other.gpu_names == one.gpu_names
        and not other.run.row.together
        and other.run.row.gpus != one.run.row.gpus
        and len(other.run.row.gpus) == 1
        and on_any_gpu(other.run.row) == on_any_gpu(one.run.row)
    ]
    rates = [other.rate.median for other in others if other.rate is not None]
    if not rates or not one.gpu_names or not one.gpu_names[0]:
        return None
    words = f"{len(rates)} other {one.gpu_names[0]}" if len(rates) > 1 else others[0].run.row.name
    return ReferenceRate(
        rate=statistics.median(rates),
        kind="other-gpu",
        about=f"median of {words}" if len(rates) > 1 else words,
        source="this run",
    )


def scaling(
    one: RowResult, rows: Iterable[RowResult], gpus: list[BenchGpu]
) -> ScalingResult | None:
    """A job on several GPUs beside what they do alone; None where that was not measured."""
    row = one.run.row
    if not row.together or len(row.gpus) < 2 or one.rate is None or one.unsteady:
        return None
    alone = {
        other.run.row.gpus[0]: other.rate.median
        for other in rows
        if other.rate is not None
        and not other.unsteady
        and len(other.run.row.gpus) == 1
        and not other.run.row.together
        and other.run.row.gpus[0] in row.gpus
        and on_any_gpu(other.run.row) == on_any_gpu(row)
    }
    if not alone or min(alone.values()) <= 0:
        return None
    whole = sum(alone.values()) * len(row.gpus) / len(alone)
    slowest, words = _slowest(alone, gpus)
    return ScalingResult(
        name=row.name,
        together=row.together,
        gpus=len(row.gpus),
        rate=one.rate.median,
        alone=whole,
        efficiency=one.rate.median / whole,
        unit=one.rate.unit,
        slowest=slowest,
        slowest_words=words,
    )


def _slowest(alone: dict[str, float], gpus: list[BenchGpu]) -> tuple[str | None, str]:
    if len(alone) < 2:
        return None, ""
    address = min(alone, key=lambda one: alone[one])
    usual = statistics.median(rate for one, rate in alone.items() if one != address)
    if alone[address] >= (1 - WARN) * usual:
        return None, ""
    gpu = next((gpu for gpu in gpus if gpu.address == address), None)
    name = gpu.words if gpu is not None else f"GPU {address}"
    others = "the others' median" if len(alone) > 2 else "the other"
    return address, f"{name} runs at {alone[address] / usual:.0%} of {others}"
