"""The latest report as metrics over HTTP, for Prometheus."""

from __future__ import annotations

import socket

from prometheus_client import CollectorRegistry, start_http_server

from ...exit_codes import UsageError
from ...reports.metrics import Families


def serve(families: Families, port: int) -> None:
    """Serve them at /metrics of every address, in a thread. Raises UsageError."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(families)
    try:
        start_http_server(port, "::" if socket.has_dualstack_ipv6() else "0.0.0.0", registry)
    except OSError as error:
        raise UsageError(f"--metrics {port}: {error.strerror}") from None
