"""The table that a fleet's page begins with: a row for each problem, those of one place first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...reports.page_sections import ProblemRow
from .. import hosts
from ..model import FleetResult, MachineProblem, ProblemGroup, SharedFault
from . import words
from .sections import STATES, short_names

_NEW = ("failed", "problem", "new")  # kinds of changes after which a problem is there


def problem_rows(result: FleetResult, pages: Mapping[str, str]) -> list[ProblemRow]:
    """pages: {machine: the address of its page}."""
    found = {
        (machine.name, problem.code, problem.cause): problem
        for machine in result.machines
        for problem in machine.problems
    }
    new = {
        (change.machine, text)
        for change in result.since or ()
        if change.kind in _NEW
        for text in change.problems
    }
    rows: list[ProblemRow] = []
    apart = list(result.shared)
    for group in result.groups:
        machines = set(group.machines)
        shared = [
            one
            for one in result.shared
            if one.about == "problem" and one.code == group.code and machines >= {*one.machines}
        ]
        apart = [one for one in apart if one not in shared]
        row = _of_group(group, shared, found, pages)
        if all((name, f"{group.code} {group.headline or group.title}") in new for name in machines):
            row = row._replace(when="new")
        rows.append(row)
    of_places = [row for row in rows if row.in_place]
    return [*map(_of_place, apart), *of_places, *(row for row in rows if not row.in_place)]


def _of_group(
    group: ProblemGroup,
    shared: list[SharedFault],
    found: Mapping[tuple[str, str, str], MachineProblem],
    pages: Mapping[str, str],
) -> ProblemRow:
    problems = [found.get((name, group.code, group.cause)) for name in group.machines]
    devices = {
        words.devices([words.short_device(name) for name in one.devices] if one else [])
        for one in problems
    }
    state = "broken" if group.level == "fail" else "degraded" if group.degrades else "warned"
    message = " ".join(filter(None, (group.of_one and f"On {group.of_one}:", group.message)))
    return ProblemRow(
        outcome=group.level,
        word=STATES[state][0],
        code=group.code,
        machines=short_names(group.machines),
        machine_link=pages.get(group.machines[0], "") if len(group.machines) == 1 else "",
        where=devices.pop() if len(devices) == 1 else "",
        what=words.problem(group),
        in_place="; ".join(map(_in_place, shared)),
        to_do=group.remedy,
        more=[message, *_all_names(group.machines)],
        commands=group.commands,
    )


def _of_place(fault: SharedFault) -> ProblemRow:
    """What the machines of a place have in common, where it is no group of its own."""
    kinds = {"silence": "silent", "slow": "degraded", "problem": "broken"}
    word, outcome = STATES[kinds[fault.about]]
    return ProblemRow(
        outcome=outcome,
        word=word,
        code=fault.code,
        machines=short_names(fault.machines),
        what=words.shared(fault),
        to_do=f"Look at the {fault.kind} first: {fault.name}.",
        more=_all_names(fault.machines),
    )


def _all_names(machines: Sequence[str]) -> list[str]:
    """Where the table has room for some of them."""
    folded = hosts.folded(machines)
    return [folded] if folded != short_names(machines) else []


def _in_place(fault: SharedFault) -> str:
    """ "8 of 9 in rack-3 (group)" """
    return f"{len(fault.machines)} of {fault.of} in {words.place(fault)}"
