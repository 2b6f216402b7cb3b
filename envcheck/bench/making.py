"""What the rows of all WHATs are made with: modes, batches that fit, a model in all modes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from ..exit_codes import Cannot
from ..facts.bench import BenchRow, LeftOut
from .models import memory_mib
from .places import BenchPlace
from .request import BenchRequest

SEED = 1
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
    always = {"compiled": True} if place.style == "jax" else {}  # nobody trains in JAX without jit
    found = [
        RowMode("fp32", {"precision": "fp32", **always}, place.why_not("fp32")),
        RowMode("tf32", {"precision": "tf32", **always}, place.why_not("tf32")),
        RowMode("amp", {**amp(place), **always}, place.why_not("amp")),
    ]
    if not place.gpus:
        del found[1]  # nobody expects it of a CPU
    if compiled and place.gpus and place.style != "jax":
        word = "compiled" if place.style == "torch" else "xla"
        found.append(RowMode(f"amp {word}", {**amp(place), "compiled": True}, found[-1].why_not))
    return found


def amp(place: BenchPlace) -> dict[str, Any]:
    """AMP as the users of a style have it."""
    ways = {"session": "rewrite", "keras": "policy", "torch": "autocast", "jax": "cast"}
    half = "float16" if place.gpus else "bfloat16"
    scaler = "dynamic" if half == "float16" else ""
    return {"precision": "amp", "half": half, "way": ways[place.style], "scaler": scaler}


def make(place: BenchPlace, what: str, model: str, name: str, **fields: Any) -> BenchRow:
    made = BenchRow(
        name=name,
        what=what,
        model=model,
        style=place.style,
        small=not place.gpus,
        seed=SEED,
        **fields,
    )
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
    **fields: int,
) -> Iterator[Planned]:
    """A model in all modes at each batch, a group a batch. main: the batch that every GPU is to have."""
    train = not request.inference
    title = " ".join([model, *_sized(model, fields), *([] if train else ["forward"])])
    wanted = [request.batch] if request.batch is not None else list(batches)
    reasons = []
    some = False
    for batch in wanted:
        for mode in modes(place, compiled):
            name = f"{title} {mode.label} {batch}"
            group = f"{title} {batch}"
            if mode.why_not:
                if batch == wanted[0]:
                    yield LeftOut(f"{title} {mode.label}", mode.why_not)
                continue
            set_ = {**fields, **mode.fields, "train": train}
            if not train:
                set_["scaler"] = ""
            row = make(place, what, model, name, batch=batch, group=group, **set_)
            if not fits(place, row):
                reasons.append(_does_not_fit(place, row))
                yield LeftOut(name, reasons[-1])
                continue
            some = True
            telling = batch == (main or wanted[0]) or request.batch is not None
            yield PlannedRow(row, telling and mode.label == "amp", rank)
    if request.batch is not None and reasons and not some:
        raise BatchTooLarge(f"--batch {request.batch}: {model}: {reasons[-1]}")


def _sized(model: str, fields: dict[str, int]) -> list[str]:
    return [str(fields["length"])] if model.startswith("bert") else []


def largest_that_fits(place: BenchPlace, wanted: Iterable[int], row: BenchRow) -> int:
    """The first of these batches with which the row fits; the last where none does."""
    batch = 1
    for batch in wanted:
        if fits(place, msgspec.structs.replace(row, batch=batch)):
            break
    return batch


def largest(
    place: BenchPlace, what: str, model: str, batch: int, **fields: Any
) -> Iterator[Planned]:
    """The largest batch with and without AMP, looked for from ``batch`` on."""
    for mode in modes(place):
        if mode.label == "tf32" or mode.why_not:
            continue  # TF32 takes as much as FP32
        row = make(
            place,
            what,
            model,
            f"{model} {mode.label} largest",
            batch=batch,
            largest=True,
            **{**fields, **mode.fields},
        )
        start = largest_that_fits(place, (batch, *(64, 32, 16, 8)), row)
        yield PlannedRow(msgspec.structs.replace(row, batch=start, memory_mib=0), rank=8)


def halved(place: BenchPlace, model: str, most: int, **fields: Any) -> int:
    """The largest batch of most, most/2, … that fits in 32 bits, so that all modes have the same."""
    template = make(place, model, model, "", **fields)
    wanted = [most >> shift for shift in range(most.bit_length())]
    return largest_that_fits(place, wanted, template)
