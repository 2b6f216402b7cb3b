"""A network run's result as metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...reports.metrics import Sample
from .model import NetworkResult


def families(result: NetworkResult) -> Iterator[tuple[str, Sequence[Sample]]]:
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
