"""The result for all machines together: groups, outliers, what one place shares. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from msgspec.structs import replace

from .. import __version__
from ..findings.states import State, is_less
from ..reports.plain import together
from . import hosts
from .attribute_outliers import attribute_outliers
from .changes import Compared, changes, first_seen
from .groups import grouped
from .model import (
    SCHEMA,
    AttributeOutlier,
    FleetCounts,
    FleetOutlier,
    FleetResult,
    JudgedMachine,
    Unanswered,
)
from .network.model import NetworkResult
from .products import products, with_products
from .rate_outliers import rate_outliers
from .shared import shared_faults


def result(
    machines: Sequence[JudgedMachine],
    before: Sequence[Sequence[JudgedMachine]] = (),
    network: NetworkResult | None = None,
) -> FleetResult:
    """The result of these machines. before: the same fleet at other times: what changed since the first of
    them is listed, and when each problem was first seen. network: whose problems the machines have."""
    found, earlier = _compared(machines), [_compared(one) for one in before]
    since = changes(earlier[0], found) if earlier else None
    if earlier:
        found = first_seen(found, earlier)
    counted = Counter(machine.state for machine in found.machines)
    return FleetResult(
        schema=SCHEMA,
        envcheck=__version__,
        counts=FleetCounts(
            machines=len(machines),
            unanswered=sum(
                one.state == "silent" and one.answer != "answered" for one in found.machines
            ),
            **{state: counted[state] for state in get_args(State)},
        ),
        groups=grouped(found.machines),
        attribute_outliers=found.differing,
        rate_outliers=found.slow,
        splits=found.splits,
        shared=shared_faults(found.machines, found.slow),
        unanswered=_unanswered(machines),
        machines=found.machines,
        copies=_copies(machines),
        since=since,
        network=network,
    )


def _compared(machines: Sequence[JudgedMachine]) -> Compared:
    by_product = products(machines)
    slow, splits = rate_outliers(by_product)
    differing: list[AttributeOutlier] = []
    for product, members in by_product.items():
        found, camps = attribute_outliers(product, members)
        differing += found
        splits = [*camps, *splits]
    worse: list[tuple[FleetOutlier, str]] = [
        (one, one.value or "none") for one in differing if is_less(one.key, one.value, one.usual)
    ]
    worse += [(one, f"{one.below:.0%} below the median") for one in slow]
    less = together(
        (one.machine, "" if one.because else f"{_where(one.devices)}{one.words} {words}")
        for one, words in worse
    )
    with_states = [
        _degraded(one, [*filter(None, less[one.name])])
        if one.name in less and one.state != "broken"
        else one
        for one in with_products(machines)
    ]
    return Compared(with_states, differing, slow, splits)


def _where(devices: Sequence[str]) -> str:
    return f"{devices[0]}: " if len(devices) == 1 else f"{len(devices)} devices: " * bool(devices)


def _degraded(machine: JudgedMachine, less: list[str]) -> JudgedMachine:
    before = f"{machine.verdict}; " if machine.state == "degraded" else "degraded: "
    verdict = before + "; ".join(less) if less else machine.verdict
    return replace(machine, state="degraded", less=less, verdict=verdict)


def _unanswered(machines: Sequence[JudgedMachine]) -> list[Unanswered]:
    silent = [one for one in machines if one.answer != "answered"]
    found = together(((one.answer, one.reason), one.name) for one in silent)
    return [
        Unanswered(outcome=outcome, reason=reason, machines=names, hosts=hosts.folded(names))
        for (outcome, reason), names in found.items()
    ]


def _copies(machines: Sequence[JudgedMachine]) -> list[list[str]]:
    """Names that have GPUs, or a whole Snapshot, in common."""
    names = together((identity, one.name) for one in machines for identity in one.identities)
    return [list(one) for one in dict.fromkeys(map(tuple, names.values())) if len(one) > 1]
