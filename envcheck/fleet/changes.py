"""What changed on a fleet's machines between directories of Snapshots, and when it was first seen. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, get_args

from msgspec.structs import replace

from ..findings.states import State
from .model import AttributeOutlier, Change, JudgedMachine, MachineChange, RateOutlier, Split

_WORST_FIRST: tuple[Change, ...] = get_args(Change)
_STATES: tuple[State, ...] = get_args(State)

_Faults = dict[str, dict[str, str]]  # {machine: {what is the same each time: its words}}


class Compared(NamedTuple):
    """Machines compared with each other: those that are less than their peers are degraded."""

    machines: list[JudgedMachine]
    differing: list[AttributeOutlier]
    slow: list[RateOutlier]
    splits: list[Split]


def changes(before: Compared, after: Compared) -> list[MachineChange]:
    """Machines that came or went, and those whose state, problems or outliers are others than before."""
    old = {machine.name: machine for machine in before.machines}
    new = {machine.name: machine for machine in after.machines}
    had, has = _faults(before), _faults(after)
    found = [
        change
        for name in sorted(old.keys() | new.keys())
        for change in _of_machine(
            name, old.get(name), new.get(name), had.get(name, {}), has.get(name, {})
        )
    ]
    return sorted(found, key=lambda change: _WORST_FIRST.index(change.kind))


def _of_machine(
    name: str,
    before: JudgedMachine | None,
    after: JudgedMachine | None,
    had: dict[str, str],
    has: dict[str, str],
) -> Iterator[MachineChange]:
    if after is None:
        yield MachineChange(machine=name, kind="gone")
        return
    if before is None:
        yield MachineChange(machine=name, kind="new", problems=[*has.values()])
        return
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
    times = {one.name: dict.fromkeys(faults, one.collected_at) for one, faults in _of_each(now)}
    going = {name: {*seen} for name, seen in times.items()}
    for look in sorted(earlier, key=_time, reverse=True):
        for one, faults in _of_each(look):
            if one.answer == "answered" and one.name in going:
                going[one.name] &= faults.keys()
                times[one.name].update(dict.fromkeys(going[one.name], one.collected_at))
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


def _time(look: Compared) -> str:
    return max((one.collected_at for one in look.machines), default="")


def _of_each(look: Compared) -> Iterator[tuple[JudgedMachine, dict[str, str]]]:
    faults = _faults(look)
    for machine in look.machines:
        yield machine, faults.get(machine.name, {})


def _faults(look: Compared) -> _Faults:
    """The worst first."""
    found: _Faults = {}
    for machine in look.machines:
        worst_first = sorted(machine.problems, key=lambda one: (one.level != "fail", one.code))
        found[machine.name] = {
            one.kind: f"{one.code} {one.headline or one.title}" for one in worst_first
        }
    for slow in look.slow:
        for kind in _kinds(slow):
            found[slow.machine][kind] = f"{kind}: {slow.below:.1%} below the median"
    for one in look.differing:
        devices = f"{', '.join(one.devices[:4])}: " if one.devices else ""
        words = f"{devices}{one.words} {one.value or 'none'}, usual is {one.usual or 'none'}"
        found[one.machine][_kind(one)] = words
    return found


def _kind(one: AttributeOutlier) -> str:
    return f"{one.key} {one.value} {' '.join(one.devices)}"


def _kinds(one: RateOutlier) -> Sequence[str]:
    """Of each slow device."""
    return [f"slow {device}".strip() for device in one.devices or [one.device]]
