"""What changed on a fleet's machines between directories of Snapshots, and when it was first seen. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, get_args

from msgspec.structs import replace

from ..findings.states import State
from .model import AttributeOutlier, Change, JudgedMachine, MachineChange, RateOutlier, Split

_WORST_FIRST: tuple[Change, ...] = get_args(Change)
_STATES: tuple[State, ...] = get_args(State)

# A machine, and {what is the same each time: its words}, the worst first.
_Looked = tuple[JudgedMachine, dict[str, str]]


class Compared(NamedTuple):
    """Machines compared with each other: those that are less than their peers are degraded."""

    machines: list[JudgedMachine]
    differing: list[AttributeOutlier]
    slow: list[RateOutlier]
    splits: list[Split]


def changes(before: Compared, after: Compared) -> list[MachineChange]:
    """Machines that came or went, and those whose state, problems or outliers are others than before."""
    old, new = _faults(before), _faults(after)
    found = [
        change
        for name in sorted(old.keys() | new.keys())
        for change in _of_machine(name, old.get(name), new.get(name))
    ]
    return sorted(found, key=lambda change: _WORST_FIRST.index(change.kind))


def _of_machine(name: str, old: _Looked | None, new: _Looked | None) -> Iterator[MachineChange]:
    if new is None:
        yield MachineChange(machine=name, kind="gone")
        return
    after, has = new
    if old is None:
        yield MachineChange(machine=name, kind="new", problems=[*has.values()])
        return
    before, had = old
    silent = before.answer != "answered", after.answer != "answered"
    if any(silent):
        if silent[0] != silent[1]:
            kind: Change = "unreachable" if silent[1] else "reachable"
            yield MachineChange(machine=name, kind=kind, problems=[*has.values()])
        return
    added = [words for kind, words in has.items() if kind not in had]
    solved = [words for kind, words in had.items() if kind not in has]
    better = _STATES.index(after.state) - _STATES.index(before.state)
    if added or better < 0:
        kind = after.state if better < 0 and after.state != "silent" else "problem"
        yield MachineChange(machine=name, kind=kind, problems=added)
    if solved or better > 0:
        kind = "healthy" if better > 0 and after.state == "healthy" else "solved"
        yield MachineChange(machine=name, kind=kind, problems=solved)


def first_seen(now: Compared, earlier: Iterable[Compared]) -> Compared:
    """With the time of the earliest Snapshot since which each problem and outlier was in all. Where a machine
    did not answer, nothing is known of that time."""
    seen = _faults(now).items()
    times = {name: dict.fromkeys(faults, one.collected_at) for name, (one, faults) in seen}
    going = {name: {*faults} for name, faults in times.items()}
    for look in sorted(earlier, key=_latest, reverse=True):
        for name, (one, faults) in _faults(look).items():
            if one.answer == "answered" and name in going:
                going[name] &= faults.keys()
                times[name].update(dict.fromkeys(going[name], one.collected_at))
    machines = [
        replace(
            one, problems=[replace(p, first_seen=times[one.name][p.kind]) for p in one.problems]
        )
        for one in now.machines
    ]
    differing = [replace(one, first_seen=times[one.machine][_kind(one)]) for one in now.differing]
    slow = [
        replace(one, first_seen=min(times[one.machine][kind] for kind in _kinds(one)))
        for one in now.slow
    ]
    return Compared(machines, differing, slow, now.splits)


def _latest(look: Compared) -> str:
    return max((one.collected_at for one in look.machines), default="")


def _faults(look: Compared) -> dict[str, _Looked]:
    found: dict[str, _Looked] = {}
    for machine in look.machines:
        worst_first = sorted(machine.problems, key=lambda one: (one.level != "fail", one.code))
        words = {one.kind: f"{one.code} {one.headline or one.title}" for one in worst_first}
        found[machine.name] = machine, words
    for slow in look.slow:
        for kind in _kinds(slow):
            found[slow.machine][1][kind] = f"{kind}: {slow.below:.1%} below the median"
    for one in look.differing:
        devices = f"{', '.join(one.devices[:4])}: " if one.devices else ""
        usual = f"{one.words} {one.value or 'none'}, usual is {one.usual or 'none'}"
        found[one.machine][1][_kind(one)] = devices + usual
    return found


def _kind(one: AttributeOutlier) -> str:
    return f"{one.key} {one.value} {' '.join(one.devices)}"


def _kinds(one: RateOutlier) -> Sequence[str]:
    """Of each slow device."""
    return [f"slow {device}".strip() for device in one.devices or [one.device]]
