"""The latest report as metrics over HTTP, for Prometheus."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from ...exit_codes import UsageError
from ...reports import openmetrics
from ...reports.model import Report


class LatestReport(Collector):
    """report: None where the latest look found nothing out; then there are no metrics."""

    report: Report | None = None

    def collect(self) -> Iterator[Metric]:
        if self.report is not None:
            text = openmetrics.render(self.report)
            yield from text_string_to_metric_families(text)  # type: ignore[no-untyped-call]

    def serve(self, port: int) -> None:
        """Serve it at /metrics of every address, in a thread. Raises UsageError."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        try:
            start_http_server(port, "::" if socket.has_dualstack_ipv6() else "0.0.0.0", registry)
        except OSError as error:
            raise UsageError(f"--metrics {port}: {error.strerror}") from None
