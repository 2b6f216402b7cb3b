"""The result for all machines together: groups, outliers, what one place shares. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .. import __version__
from . import hosts
from .attribute_outliers import attribute_outliers
from .changes import changes
from .groups import grouped
from .model import (
    SCHEMA,
    AttributeOutlier,
    FleetCounts,
    FleetResult,
    JudgedMachine,
    Unanswered,
)
from .products import products
from .rate_outliers import rate_outliers
from .shared import shared_faults


def result(
    machines: Sequence[JudgedMachine], before: Sequence[JudgedMachine] | None = None
) -> FleetResult:
    """The result of these machines. before: the same fleet at another time, to list what changed."""
    states = [machine.state for machine in machines]
    by_product = products(machines)
    slow, splits = rate_outliers(by_product)
    differing: list[AttributeOutlier] = []
    for product, members in by_product.items():
        found, camps = attribute_outliers(product, members)
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
        attribute_outliers=differing,
        rate_outliers=slow,
        splits=splits,
        shared=shared_faults(machines, slow),
        unanswered=_unanswered(machines),
        machines=list(machines),
        since=None if before is None else changes(before, machines),
    )


def _unanswered(machines: Sequence[JudgedMachine]) -> list[Unanswered]:
    found: dict[tuple[str, str], list[JudgedMachine]] = {}
    for machine in machines:
        if machine.state == "unanswered":
            found.setdefault((machine.answer, machine.reason), []).append(machine)
    return [
        Unanswered(
            outcome=group[0].answer,
            reason=group[0].reason,
            machines=[machine.name for machine in group],
            hosts=hosts.folded(machine.name for machine in group),
        )
        for group in found.values()
    ]
