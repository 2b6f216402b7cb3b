"""Metrics as text that the parsers of OpenMetrics and Prometheus accept, and node_exporter's collector.

OpenMetrics 1.0 and Prometheus' format 0.0.4 disagree on counters, info metrics and state sets, so every
family is a gauge. A family has one help text (metrics.csv), whether a machine's metrics or a fleet's have it:
node_exporter refuses two in one directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, get_args

from prometheus_client.core import CollectorRegistry, GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from .. import safe_text
from ..data import table
from ..findings.states import State

NO_LABELS: Mapping[str, str] = {}
_LONGEST = 200  # characters of a label's value


class Sample(NamedTuple):
    value: float
    labels: Mapping[str, str] = NO_LABELS


class Families(Collector):
    def __init__(self, families: Iterable[tuple[str, Sequence[Sample]]]) -> None:
        self.families = families

    def collect(self) -> Iterator[GaugeMetricFamily]:
        described = {row["name"]: row for row in table("metrics")}
        for name, samples in self.families:
            row = described[name]
            metric = GaugeMetricFamily(f"envcheck_{name}", row["help"], unit=row["unit"])
            # A parser refuses the same labels a second time.
            values = {tuple(_clean(sample.labels).items()): sample.value for sample in samples}
            for labels, value in values.items():
                metric.add_sample(metric.name, dict(labels), value)
            if values:
                yield metric


def render(families: Iterable[tuple[str, Sequence[Sample]]]) -> str:
    """The text of families: a name of metrics.csv, and its samples. Those without a sample are omitted."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Families(list(families)))
    return generate_latest(registry).decode()  # type: ignore[no-any-return,no-untyped-call]


def states(state: State, labels: Mapping[str, str] = NO_LABELS) -> list[Sample]:
    return [Sample(one == state, {**labels, "state": one}) for one in get_args(State)]


def moment(time: str, labels: Mapping[str, str] = NO_LABELS) -> list[Sample]:
    """When a Snapshot was made; nothing where that is not known."""
    try:
        seconds = datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return []
    return [Sample(seconds, labels)]


def _clean(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: safe_text.one_line(value[:_LONGEST]) for name, value in labels.items() if value}
