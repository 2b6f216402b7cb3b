"""Which rows a request means on this machine: a pure function of the request and the Snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ..exit_codes import Cannot
from ..facts.bench import BenchRow, LeftOut
from ..facts.snapshot import Snapshot
from .making import Planned, PlannedRow
from .places import BenchPlace, places
from .request import BenchRequest, checked
from .rows import rows_of, telling

BUDGET = 300.0  # seconds for all rows where nothing in particular was asked for
BUDGET_CPU = 55.0
# Seconds of one row beyond its import and its repetitions: the model and its first step, the warm-up,
# the end; with a compiler, and on a job of several processes.
_BUILD = {"gpu": 8.0, "cpu": 2.0}
_WARM_UP = {"gpu": 5.0, "cpu": 1.5}
_END = 2.0
_COMPILING = 40.0
_JOB = 15.0
_REASONS = 5  # shown where nothing can run; of more, the first


class BenchPlan(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[BenchRow] = []
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
    if not here:
        raise Cannot(
            "the target has no framework to train with",
            hint="envcheck install puts one into an environment; --target names another",
        )
    on_cpu = not any(place.gpus for place in here)
    each = 0.3 if on_cpu else 2.0
    found: list[PlannedRow] = []
    seconds: dict[str, float] = {}
    for place in here:
        prefix = f"{place.style} " if len(here) > 1 else ""
        for one in _all_rows(request, place):
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
    if not rows:
        reasons = left_out if len(left_out) <= _REASONS else left_out[:1]
        why = "; ".join(f"{one.name}: {one.reason}" for one in reasons)
        raise Cannot(f"nothing of what was asked for can run here{': ' if why else ''}{why}")
    estimate = sum(seconds[row.name] for row in rows)
    return BenchPlan(
        rows=rows,
        left_out=left_out,
        seconds=estimate,
        deadline=600.0 + 10 * estimate,  # each row has deadlines of its own
        on_cpu=on_cpu,
        repetition_seconds=each,
        warm_up_seconds=3.0 if on_cpu else 20.0,
    )


def row_seconds(row: BenchRow, import_seconds: float, repetitions: int, each: float) -> float:
    """What a row takes, about: its import, its model, the warm-up, the repetitions, the end."""
    where = "gpu" if row.gpus or not row.small else "cpu"
    seconds = import_seconds + _BUILD[where] + _END + _WARM_UP[where] + repetitions * each
    return seconds + (_COMPILING if row.compiled else 0) + (_JOB if row.together else 0)


def _all_rows(request: BenchRequest, place: BenchPlace) -> Iterator[Planned]:
    """The rows of a place with their GPUs: of WHAT, or what tells most."""
    named = (one for what in request.what for one in rows_of(what, place, request))
    planned = list(named if request.what else telling(place, request))
    for one in planned:
        if isinstance(one, LeftOut) or not place.gpus:
            yield one
        else:
            yield from _spread(one, place)
    if len(place.gpus) > 1:
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
    if place.style not in ("keras", "torch"):
        return
    kind = "mirrored" if place.style == "keras" else "ddp"
    for one in planned:
        if isinstance(one, LeftOut) or not one.each:
            continue
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
    why = f"no time for it in the default {budget:.0f} s: envcheck bench WHAT runs it"
    return [LeftOut(", ".join(names[:_REASONS]) + more, why)]


def _in_groups(rows: list[BenchRow]) -> list[BenchRow]:
    """The rows of a group behind one another, where the first of them stands."""
    places_: dict[str, int] = {}
    for number, row in enumerate(rows):
        places_.setdefault(row.group or row.name, number)
    return sorted(rows, key=lambda row: places_[row.group or row.name])
