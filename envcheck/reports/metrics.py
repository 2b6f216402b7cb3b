"""Metrics as text that the parsers of OpenMetrics and Prometheus accept, and node_exporter's collector.

OpenMetrics 1.0 and Prometheus' format 0.0.4 disagree on counters, info metrics and state sets, so every
family is a gauge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import CollectorRegistry, GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from .. import safe_text

_LONGEST = 200  # characters of a label's value


class Sample(NamedTuple):
    value: float
    labels: Mapping[str, str] = {}


class Family(NamedTuple):
    """name: without "envcheck_", ending in its unit where it has one ("seconds", "celsius")."""

    name: str
    help: str
    samples: list[Sample]
    unit: str = ""


class _Families(Collector):
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for family in self._families:
            metric = GaugeMetricFamily(f"envcheck_{family.name}", family.help, unit=family.unit)
            # A parser refuses the same labels a second time.
            values = {
                tuple(_clean(sample.labels).items()): sample.value for sample in family.samples
            }
            for labels, value in values.items():
                metric.add_sample(metric.name, dict(labels), value)
            if values:
                yield metric


def render(families: Iterable[Family]) -> str:
    """The text. Families without a sample are omitted."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(list(families)))
    return generate_latest(registry).decode()  # type: ignore[no-any-return,no-untyped-call]


def _clean(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: safe_text.one_line(value[:_LONGEST]) for name, value in labels.items() if value}
