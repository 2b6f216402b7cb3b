"""Which rows a request means on this machine: a pure function of the request and the Snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from ..exit_codes import Cannot
from ..facts.bench import BenchRow, LeftOut, Style
from ..facts.snapshot import Snapshot
from .making import Planned, PlannedRow
from .places import BenchPlace, frameworks, gpu_count, packages, places, style
from .request import SYSTEMS, BenchRequest, checked
from .rows import rows_of, telling

__all__ = ["BenchPlan", "LeftOut", "plan", "row_seconds", "styles"]

BUDGET = 300.0  # seconds for all rows where nothing in particular was asked for
BUDGET_CPU = 55.0
SYSTEM_SECONDS = 60.0  # that an acceleration system may take, about
# Seconds of one row beyond its import and its repetitions: the model and its first step, the warm-up,
# the end; with a compiler, and on a job of several processes.
_BUILD = {"gpu": 8.0, "cpu": 2.0}
_WARM_UP = {"gpu": 5.0, "cpu": 1.5}
_END = 2.0
_COMPILING = 40.0
_JOB = 15.0
_GPUS_OF = {"memory": 1, "links": 1, "peers": 2, "nccl": 2}  # the least that a system needs
_REASONS = 5  # that are told where nothing can run; of more, the first
_TRYING = 60.0  # for the largest batch


class BenchPlan(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[BenchRow] = []
    systems: list[str] = []  # acceleration systems that are asked for, too: links, allreduce
    left_out: list[LeftOut] = []
    seconds: float = 0.0  # that all of it may take, about
    deadline: float = 0.0  # seconds after which whoever runs it is not waited for any more
    on_cpu: bool = False  # no GPU: small sizes, which say nothing about one
    repetition_seconds: float = 2.0
    warm_up_seconds: float = 20.0  # at most


def plan(request: BenchRequest, snapshot: Snapshot) -> BenchPlan:
    """The rows, their order, and what is left out.

    Raises UsageError for an unknown WHAT or GPU, Cannot where nothing can run, and BatchTooLarge.
    """
    request = checked(request)
    here, left_out = places(snapshot, request.gpus)
    count = gpu_count(snapshot, request.gpus)
    systems = []
    for name in (name for what in request.what for name in SYSTEMS.get(what, ())):
        if why := _why_no_system(name, count, snapshot):
            left_out.append(LeftOut(name, why))
        else:
            systems.append(name)
    models = [what for what in request.what if what not in SYSTEMS]
    if not here and (models or not request.what):
        raise Cannot(
            "the target has no framework to train with",
            hint="envcheck install puts one into an environment; --target names another",
        )
    on_cpu = not any(place.gpus for place in here) if here else not count
    each = 0.3 if on_cpu else 2.0
    found: list[PlannedRow] = []
    seconds: dict[str, float] = {}
    for place in here:
        prefix = f"{place.style} " if len(here) > 1 else ""
        for one in _all_rows(request, place, models if request.what else None):
            if isinstance(one, LeftOut):
                left_out.append(LeftOut(prefix + one.name, one.reason))
                continue
            named = msgspec.structs.replace(
                one.row,
                name=prefix + one.row.name,
                group=prefix + one.row.group if one.row.group else "",
            )
            found.append(one._replace(row=named))
            seconds[named.name] = row_seconds(
                named, place.import_seconds, request.repetitions, each
            )
    if not request.what:
        budget = BUDGET_CPU if on_cpu else BUDGET
        every, found = found, _within(budget, found, seconds)
        left_out += _late(every, found, budget)
    rows = _in_groups([one.row for one in found])
    if not rows and not systems:
        told = left_out if len(left_out) <= _REASONS else left_out[:1]
        why = "; ".join(f"{one.name}: {one.reason}" for one in told)
        raise Cannot(f"nothing of what was asked for can run here{': ' if why else ''}{why}")
    estimate = sum(seconds[row.name] for row in rows) + SYSTEM_SECONDS * len(systems)
    return BenchPlan(
        rows=rows,
        systems=systems,
        left_out=left_out,
        seconds=estimate,
        deadline=600.0 + 10 * estimate,  # each row has deadlines of its own
        on_cpu=on_cpu,
        repetition_seconds=each,
        warm_up_seconds=3.0 if on_cpu else 20.0,
    )


def _why_no_system(name: str, gpus: int, snapshot: Snapshot) -> str:
    """Why it cannot run; "" where it can, or nobody knows."""
    if gpus < _GPUS_OF.get(name, 0):
        return f"it needs {_GPUS_OF[name]}, and there is {gpus or 'no'} GPU"
    if name in ("nccl", "horovod") and snapshot.target is None:
        return "it is the target's, and there is none: --target names one"
    if name == "horovod" and snapshot.target is not None:
        there = packages(snapshot.target)
        if there and "horovod" not in there:
            return "the target has no horovod"
    return ""


def styles(snapshot: Snapshot) -> list[Style]:
    """How models are written for the frameworks that the target has, and that can be imported."""
    return [style(one) for one in frameworks(snapshot.target)]


def row_seconds(row: BenchRow, import_seconds: float, repetitions: int, each: float) -> float:
    """What a row takes, about: its import, its model, the warm-up, the repetitions, the end."""
    where = "gpu" if row.gpus or not row.small else "cpu"
    seconds = import_seconds + _BUILD[where] + _END
    if row.steps:
        seconds += row.steps * 0.05
    else:
        seconds += _WARM_UP[where] + repetitions * each
    seconds += _COMPILING if row.compiled or row.tensorrt else 0
    seconds += _JOB if row.together else 0
    return seconds + (_TRYING if row.largest else 0)


def _all_rows(
    request: BenchRequest, place: BenchPlace, models: list[str] | None
) -> Iterator[Planned]:
    """The rows of a place with their GPUs. models: of WHAT; None for what tells most."""
    asked = (
        telling(place, request)
        if models is None
        else (one for what in models for one in rows_of(what, place, request))
    )
    planned = list(asked)
    for one in planned:
        if isinstance(one, LeftOut) or not place.gpus:
            yield one
        else:
            yield from _spread(one, place)
    if request.together and len(place.gpus) > 1:
        yield from _together(planned, place)


def _spread(one: PlannedRow, place: BenchPlace) -> Iterator[PlannedRow]:
    """On the first GPU; on the others, too, where the row is to be on each."""
    if len(place.gpus) == 1 or not one.each:
        yield one._replace(row=msgspec.structs.replace(one.row, gpus=[place.gpus[0].address]))
        return
    for gpu in place.gpus:
        first = gpu is place.gpus[0]
        row = msgspec.structs.replace(
            one.row,
            name=f"{one.row.name} on {gpu.words}",
            gpus=[gpu.address],
            group=one.row.group if first else f"{one.row.name} on the others",
        )
        yield one._replace(row=row)


def _together(planned: Iterable[Planned], place: BenchPlace) -> Iterator[Planned]:
    """What is on each GPU, on all of them as one job."""
    own: dict[Style, list[Literal["mirrored", "ddp", "horovod"]]] = {
        "keras": ["mirrored"],
        "jax": ["mirrored"],
        "torch": ["ddp"],
    }
    kinds = list(own.get(place.style, []))
    if place.style != "jax" and "horovod" in place.packages:
        kinds.append("horovod")
    for one in planned:
        if isinstance(one, LeftOut) or not one.each:
            continue
        for kind in kinds:
            row = msgspec.structs.replace(
                one.row,
                name=f"{one.row.name} {kind} on {len(place.gpus)} GPUs",
                gpus=[gpu.address for gpu in place.gpus],
                together=kind,
                group=f"{one.row.name} together",
            )
            yield PlannedRow(row, rank=one.rank + 1)


def _within(budget: float, found: list[PlannedRow], seconds: dict[str, float]) -> list[PlannedRow]:
    """As many as the time allows, those of the lowest rank first; all of the first rank in any case."""
    least = min((one.rank for one in found), default=0)
    taken: set[str] = set()
    spent = 0.0
    for one in sorted(found, key=lambda one: one.rank):  # stable: their order within a rank
        takes = seconds[one.row.name]
        if one.rank > least and spent + takes > budget:
            continue
        spent += takes
        taken.add(one.row.name)
    return [one for one in found if one.row.name in taken]


def _late(every: list[PlannedRow], found: list[PlannedRow], budget: float) -> list[LeftOut]:
    """What there is no time for, as one."""
    names = [one.row.name for one in every if one not in found]
    if not names:
        return []
    more = f" and {len(names) - _REASONS} more" if len(names) > _REASONS else ""
    why = f"no time for it in the {budget:.0f} s of a bench of no rows by name: envcheck bench WHAT runs it"
    return [LeftOut(", ".join(names[:_REASONS]) + more, why)]


def _in_groups(rows: list[BenchRow]) -> list[BenchRow]:
    """The rows of a group behind one another, where the first of them stands."""
    places_: dict[str, int] = {}
    for number, row in enumerate(rows):
        places_.setdefault(row.group or row.name, number)
    return sorted(rows, key=lambda row: places_[row.group or row.name])
