"""A fleet's result as metrics. The machines' names in the inventory are the only names in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...reports import metrics
from ...reports.metrics import Sample
from ..model import FleetResult, JudgedMachine
from ..network.model import NetworkResult


def render(result: FleetResult | NetworkResult) -> str:
    return metrics.render(_families(result) if isinstance(result, FleetResult) else network(result))


def _families(result: FleetResult) -> Iterator[tuple[str, Sequence[Sample]]]:
    yield "build_info", [Sample(1, {"version": result.envcheck})]
    found: dict[str, list[Sample]] = {}
    for one in result.machines:
        for name, sample in _of_machine(one, {"machine": one.name}):
            found.setdefault(name, []).append(sample)
    for other in result.attribute_outliers:
        for device in other.devices or [""]:
            labels = {"machine": other.machine, "device": device, "key": other.key}
            found.setdefault("outlier", []).append(Sample(1, labels))
    for slow in result.rate_outliers:
        labels = {"machine": slow.machine, "device": slow.device}
        found.setdefault("slower_ratio", []).append(Sample(slow.below, labels))
    yield from found.items()
    if result.network is not None:
        yield from network(result.network)


def _of_machine(machine: JudgedMachine, named: dict[str, str]) -> Iterator[tuple[str, Sample]]:
    for sample in metrics.states(machine.state, named):
        yield "state", sample
    for sample in metrics.moment(machine.collected_at, named):
        yield "snapshot_time_seconds", sample
    if machine.product:
        yield "machine_info", Sample(1, {**named, "product": machine.product})
    for one in machine.problems:
        labels = {**named, "code": one.code, "cause": one.cause, "level": one.level}
        labels["degrades"] = "yes" if one.degrades else ""
        yield "findings", Sample(max(1, len(one.devices)), labels)


def network(result: NetworkResult) -> Iterator[tuple[str, Sequence[Sample]]]:
    tested = [(one, {"machine": one.name}) for one in result.machines if one.pairs]
    yield "network_failed_pairs", [Sample(one.failed, labels) for one, labels in tested]
    for name, field in (("send", "sends_mb_s"), ("receive", "receives_mb_s")):
        rates = [(getattr(one, field), labels) for one, labels in tested]
        samples = [Sample(rate * 1e6, labels) for rate, labels in rates if rate is not None]
        yield f"network_{name}_bytes_per_second", samples
    collectives = [
        Sample(one.bus_mb_s * 1e6, {"collective": one.collective, "message": str(one.bytes)})
        for one in result.together
        if one.bus_mb_s is not None
    ]
    yield "network_bus_bytes_per_second", collectives
