"""What can be said of all machines together: groups, odd ones out, what one place shares. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .. import __version__
from . import hosts
from .groups import grouped
from .model import (
    SCHEMA,
    FleetCounts,
    FleetResult,
    JudgedMachine,
    OddAttribute,
    Unanswered,
)
from .odd_attributes import odd_attributes
from .odd_rates import odd_rates
from .products import products
from .shared import shared_faults


def result(machines: Sequence[JudgedMachine]) -> FleetResult:
    states = [machine.state for machine in machines]
    alike = products(machines)
    slow, splits = odd_rates(alike)
    differing: list[OddAttribute] = []
    for product, these in alike.items():
        found, camps = odd_attributes(product, these)
        differing += found
        splits = [*camps, *splits]
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
        groups=grouped(machines),
        odd_attributes=differing,
        odd_rates=slow,
        splits=splits,
        shared=shared_faults(machines, slow),
        unanswered=_unanswered(machines),
        machines=list(machines),
    )


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
            limit=hosts.limit(machine.name for machine in these),
        )
        for these in found.values()
    ]
