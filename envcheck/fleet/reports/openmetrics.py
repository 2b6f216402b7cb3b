"""A fleet's result as metrics. The machines' names in the inventory are the only names in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import get_args

from ...reports import metrics
from ...reports.metrics import Family, Sample
from ..model import FleetResult, JudgedMachine, State


def render(result: FleetResult, labels: Mapping[str, str] | None = None) -> str:
    """labels: of every sample, as the user asked for them."""
    return metrics.render(_families(result), labels)


def _families(result: FleetResult) -> Iterator[Family]:
    yield Family(
        "build_info",
        "The envcheck that judged these machines.",
        [Sample(1, {"version": result.envcheck})],
    )
    states = Counter(machine.state for machine in result.machines)
    yield Family(
        "fleet_machines",
        "Machines by state: healthy, problems, could-not-look, unanswered.",
        [Sample(states[state], {"state": state}) for state in get_args(State)],
    )
    yield Family(
        "fleet_machine",
        "1 for each machine, with its state as a label.",
        [
            Sample(1, {"machine": one.name, "product": one.product, "state": one.state})
            for one in result.machines
        ],
    )
    yield Family(
        "fleet_problem",
        "1 for each cause that a check found on a machine.",
        [sample for machine in result.machines for sample in _problems(machine)],
    )
    yield Family(
        "fleet_odd_attribute",
        "1 for each fact in which a machine differs from most of its product.",
        [
            Sample(1, {"machine": outlier.machine, "device": device, "key": outlier.key})
            for outlier in result.attribute_outliers
            for device in outlier.devices or [""]
        ],
    )
    yield Family(
        "fleet_odd_rate_below_ratio",
        "How far a measured rate is worse than the median of its product: 0.05 is 5 %.",
        [
            Sample(
                outlier.below,
                {"machine": outlier.machine, "device": outlier.device, "key": outlier.key},
            )
            for outlier in result.rate_outliers
        ],
        "ratio",
    )
    yield Family(
        "fleet_shared_fault_machines",
        "Machines of one place (rack, switch, image) that share a fault.",
        [
            Sample(
                len(fault.machines), {"kind": fault.kind, "place": fault.name, "code": fault.code}
            )
            for fault in result.shared
        ],
    )


def _problems(machine: JudgedMachine) -> Iterator[Sample]:
    for problem in machine.problems:
        labels = {"machine": machine.name, "code": problem.code, "level": problem.level}
        yield Sample(1, {**labels, "cause": problem.cause})
