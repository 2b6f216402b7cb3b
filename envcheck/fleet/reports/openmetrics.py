"""A fleet's result as metrics. The machines' names in the inventory are the only names in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...reports import metrics
from ...reports.metrics import Sample
from ..model import FleetResult, JudgedMachine


def render(result: FleetResult) -> str:
    return metrics.render(_families(result))


def _families(result: FleetResult) -> Iterator[tuple[str, Sequence[Sample]]]:
    yield "build_info", [Sample(1, {"version": result.envcheck})]
    named = [({"machine": one.name}, one) for one in result.machines]
    yield "state", [sample for labels, one in named for sample in metrics.states(one.state, labels)]
    times = [sample for labels, one in named for sample in metrics.moment(one.collected_at, labels)]
    yield "snapshot_time_seconds", times
    products = [(labels, one.product) for labels, one in named if one.product]
    yield "machine_info", [Sample(1, {**labels, "product": name}) for labels, name in products]
    yield "findings", [sample for machine in result.machines for sample in _findings(machine)]
    differing = [
        Sample(1, {"machine": one.machine, "device": device, "key": one.key})
        for one in result.attribute_outliers
        for device in one.devices or [""]
    ]
    yield "outlier", differing
    slow = [
        Sample(one.below, {"machine": one.machine, "device": one.device})
        for one in result.rate_outliers
    ]
    yield "slower_ratio", slow


def _findings(machine: JudgedMachine) -> Iterator[Sample]:
    for one in machine.problems:
        labels = {"machine": machine.name, "code": one.code, "cause": one.cause}
        degrades = "yes" if one.degrades else ""
        yield Sample(max(1, len(one.devices)), {**labels, "level": one.level, "degrades": degrades})
