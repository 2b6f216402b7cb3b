"""A model's rows: its modes, and batches that fit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from ..exit_codes import Cannot
from ..facts.bench import BenchRow, LeftOut
from .models import memory_mib
from .places import BenchPlace
from .request import BenchRequest

_OF_MEMORY = 0.9  # of a GPU's, that a planned row may take


class BatchTooLarge(Cannot):
    """No row of a model can have this batch on these GPUs, by the estimate of its memory."""


class PlannedRow(NamedTuple):
    """A row without its GPUs. each: on every GPU, not on the first alone. rank: the lower the sooner,
    where not all can be taken; pairs that are compared have neighbouring ones."""

    row: BenchRow
    each: bool = False
    rank: int = 5


class RowMode(NamedTuple):
    label: str
    fields: dict[str, Any]
    why_not: str = ""


Planned = PlannedRow | LeftOut


def modes(place: BenchPlace, compiled: bool = False) -> list[RowMode]:
    """FP32, TF32, AMP, and AMP compiled where that is asked for; with reasons for what is not there."""
    is_jax = place.style == "jax"
    always = {"compiled": True} if is_jax else {}  # JAX is trained with jit
    amp = {"precision": "amp", "half": place.half}
    found = [
        RowMode("fp32", {"precision": "fp32", **always}, place.why_not("fp32")),
        RowMode("tf32", {"precision": "tf32", **always}, place.why_not("tf32")),
        RowMode("amp", {**amp, **always}, place.why_not("amp")),
    ]
    if not place.gpus:
        del found[1]  # a CPU has none
    if compiled and place.gpus and not is_jax:
        word = "compiled" if place.style == "torch" else "xla"
        found.append(RowMode(f"amp {word}", {**amp, "compiled": True}, found[-1].why_not))
    return found


def make(place: BenchPlace, what: str, model: str, name: str, **fields: Any) -> BenchRow:
    small = not place.gpus
    made = BenchRow(name=name, what=what, model=model, style=place.style, small=small, **fields)
    return msgspec.structs.replace(made, memory_mib=memory_mib(made))


def fits(place: BenchPlace, row: BenchRow) -> bool:
    return not place.memory_mib or memory_mib(row) <= _OF_MEMORY * place.memory_mib


def _does_not_fit(place: BenchPlace, row: BenchRow) -> str:
    where = place.gpus[0].name if place.gpus else "this machine"
    return (
        f"batch {row.batch} would take about {memory_mib(row) / 1024:,.0f} GiB, and {where} has "
        f"{place.memory_mib / 1024:,.0f} GiB{'' if place.gpus else ' free'}"
    )


def timed(
    place: BenchPlace,
    request: BenchRequest,
    what: str,
    model: str,
    batches: Iterable[int],
    *,
    compiled: bool = False,
    rank: int = 5,
    main: int = 0,
    **size: int,
) -> Iterator[Planned]:
    """A model in all modes at each batch, a group a batch. main: the batch that every GPU is to have."""
    title = f"{model} {size['length']}" if "length" in size else model
    wanted = [request.batch] if request.batch is not None else list(batches)
    reasons = []
    some = False
    for batch in wanted:
        for mode in modes(place, compiled):
            name = f"{title} {mode.label} {batch}"
            if mode.why_not:
                if batch == wanted[0]:
                    yield LeftOut(f"{title} {mode.label}", mode.why_not)
                continue
            fields = {**size, **mode.fields, "group": f"{title} {batch}"}
            row = make(place, what, model, name, batch=batch, **fields)
            if not fits(place, row):
                reasons.append(_does_not_fit(place, row))
                yield LeftOut(name, reasons[-1])
                continue
            some = True
            on_each = batch == (main or wanted[0]) or request.batch is not None
            yield PlannedRow(row, on_each and mode.label == "amp", rank)
    if request.batch is not None and reasons and not some:
        raise BatchTooLarge(f"--batch {request.batch}: {model}: {reasons[-1]}")


def largest_that_fits(place: BenchPlace, wanted: Iterable[int], row: BenchRow) -> int:
    """The first of these batches with which the row fits; the last where none does."""
    batch = 1
    for batch in wanted:
        if fits(place, msgspec.structs.replace(row, batch=batch)):
            break
    return batch


def halved(place: BenchPlace, model: str, most: int, **size: int) -> int:
    """The largest batch of most, most/2, … that fits in 32 bits, so that all modes have the same."""
    template = make(place, model, model, "", **size)
    return largest_that_fits(place, [most >> n for n in range(most.bit_length())], template)
