"""What can be said of all machines together: groups, odd ones out, what one place shares. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .. import __version__
from . import hosts
from .model import (
    SCHEMA,
    FleetCounts,
    FleetResult,
    JudgedMachine,
    MachineProblem,
    ProblemGroup,
    Unanswered,
)


def result(machines: Sequence[JudgedMachine]) -> FleetResult:
    states = [machine.state for machine in machines]
    return FleetResult(
        schema=SCHEMA,
        envcheck=__version__,
        counts=FleetCounts(
            machines=len(machines),
            healthy=states.count("healthy"),
            problems=states.count("problems"),
            could_not_look=states.count("could-not-look"),
            unanswered=states.count("unanswered"),
        ),
        groups=_groups(machines),
        odd_attributes=[],
        odd_rates=[],
        splits=[],
        shared=[],
        unanswered=_unanswered(machines),
        machines=list(machines),
    )


def _groups(machines: Sequence[JudgedMachine]) -> list[ProblemGroup]:
    found: dict[str, tuple[MachineProblem, list[str]]] = {}
    for machine in machines:
        for problem in machine.problems:
            names = found.setdefault(problem.kind, (problem, []))[1]
            if machine.name not in names:
                names.append(machine.name)
    groups = [
        ProblemGroup(
            code=problem.code,
            level=problem.level,
            title=problem.title,
            headline=problem.headline,
            machines=names,
            hosts=hosts.folded(names),
            remedy=problem.remedy,
            commands=problem.commands,
        )
        for problem, names in found.values()
    ]
    return sorted(groups, key=lambda group: (group.level != "fail", -len(group.machines)))


def _unanswered(machines: Sequence[JudgedMachine]) -> list[Unanswered]:
    found: dict[tuple[str, str], list[JudgedMachine]] = {}
    for machine in machines:
        if machine.state == "unanswered":
            found.setdefault((machine.answer, machine.reason), []).append(machine)
    return [
        Unanswered(
            outcome=these[0].answer,
            reason=these[0].reason,
            machines=[machine.name for machine in these],
            hosts=hosts.folded(machine.name for machine in these),
        )
        for these in found.values()
    ]
