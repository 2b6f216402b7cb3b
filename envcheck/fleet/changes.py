"""What changed on a fleet's machines between two directories of Snapshots. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

from ..findings.states import State
from .model import Change, JudgedMachine, MachineChange, MachineProblem

_WORST_FIRST: tuple[Change, ...] = get_args(Change)
_STATES: tuple[State, ...] = get_args(State)


def changes(before: Sequence[JudgedMachine], after: Sequence[JudgedMachine]) -> list[MachineChange]:
    """Machines that came or went, and those whose state or problems are others than before."""
    old = {machine.name: machine for machine in before}
    new = {machine.name: machine for machine in after}
    found = [
        change
        for name in sorted(old.keys() | new.keys())
        for change in _of_machine(name, old.get(name), new.get(name))
    ]
    return sorted(found, key=lambda change: _WORST_FIRST.index(change.kind))


def _of_machine(
    name: str, before: JudgedMachine | None, after: JudgedMachine | None
) -> Iterator[MachineChange]:
    if after is None:
        yield MachineChange(machine=name, kind="gone")
        return
    if before is None:
        yield MachineChange(machine=name, kind="new", problems=_words(after.problems))
        return
    silent = before.answer != "answered", after.answer != "answered"
    if any(silent):
        if silent[0] != silent[1]:
            kind: Change = "unreachable" if silent[1] else "reachable"
            yield MachineChange(machine=name, kind=kind, problems=_words(after.problems))
        return
    had, has = ({one.kind: one for one in machine.problems} for machine in (before, after))
    added = _words(has[kind] for kind in has.keys() - had.keys())
    solved = _words(had[kind] for kind in had.keys() - has.keys())
    better = _STATES.index(after.state) - _STATES.index(before.state)
    if added or better < 0:
        named = after.state if after.state in ("broken", "degraded") else "problem"
        kind = named if better < 0 else "problem"
        yield MachineChange(machine=name, kind=kind, problems=added)
    if solved or better > 0:
        kind = "healthy" if better > 0 and after.state == "healthy" else "solved"
        yield MachineChange(machine=name, kind=kind, problems=solved)


def _words(problems: Iterable[MachineProblem]) -> list[str]:
    worst_first = sorted(problems, key=lambda one: (one.level != "fail", one.code))
    return [f"{one.code} {one.headline or one.title}" for one in worst_first]
