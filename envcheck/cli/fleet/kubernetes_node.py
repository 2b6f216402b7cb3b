"""`envcheck fleet kubernetes-node`: looks at this node again and again, and says so to Kubernetes."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING

from ...exit_codes import CouldNotLook, EnvcheckError, ExitCode, UsageError
from .. import files, messages
from ..options import flag, option
from ..parser import Parser
from ..values import duration, number
from . import slurm_prolog

if TYPE_CHECKING:
    from ...findings.states import State
    from ...fleet.kubernetes.api import KubernetesNodes
    from ...fleet.kubernetes.health import NodeHealth
    from ...reports.metrics import Families

AGAIN = 60.0  # seconds, after Kubernetes gave no answer
_CODES: dict[State, ExitCode] = {"broken": ExitCode.PROBLEMS, "silent": ExitCode.COULD_NOT_LOOK}

EPILOG = """\
The Helm chart (Dockerfiles/kubernetes) runs this in a DaemonSet.
examples:
  envcheck fleet kubernetes-node --conditions --metrics 9842
  envcheck fleet kubernetes-node --once     one line, for node-problem-detector
exit codes with --once: 0 healthy or degraded, 1 broken, 4 nothing is known"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    node = os.environ.get("NODE_NAME")
    option(parser, "--node", "NAME", "the node's name (default: $NODE_NAME)", default=node)
    words = "time between two looks (default: 1h)"
    option(parser, "--interval", "TIME", words, type=duration("1m", "7d"), default=3600.0)
    flag(parser, "--once", "look once, print one line")
    flag(parser, "--conditions", "set the node conditions GPUBroken and GPUDegraded")
    flag(parser, "--taint", "taint the node (NoSchedule) while a check fails")
    slurm_prolog.add_limit(parser)
    words = "serve metrics for Prometheus at this port"
    option(parser, "--metrics", "PORT", words, type=number(1, 65535))
    words = "write snapshot.json, and a file for each condition, into this directory"
    option(parser, "--directory", "DIR", words)


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.kubernetes import api
    from ...reports.metrics import Families

    asks = arguments.conditions or arguments.taint
    if asks and not arguments.node:
        raise UsageError("--conditions and --taint need --node NAME, or NODE_NAME")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    nodes = api.connect() if asks else None
    latest = Families([])
    if arguments.metrics:
        _serve(latest, arguments.metrics)
    while not arguments.once:
        try:
            _report(arguments, nodes, latest)
            time.sleep(arguments.interval)
        except EnvcheckError as error:
            messages.say(f"{error}{f' ({error.hint})' if error.hint else ''}")
            time.sleep(min(arguments.interval, AGAIN))
    return _CODES.get(_report(arguments, nodes, latest).state, ExitCode.HEALTHY)


def _serve(metrics: Families, port: int) -> None:
    """At /metrics of every address, in a thread. Raises UsageError."""
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    try:
        start_http_server(port, "::" if socket.has_dualstack_ipv6() else "0.0.0.0", registry)
    except OSError as error:
        raise UsageError(f"--metrics {port}: {error.strerror}") from None


def _report(
    arguments: argparse.Namespace, nodes: KubernetesNodes | None, latest: Families
) -> NodeHealth:
    """Look once, and say so wherever the arguments ask for."""
    from ...fleet.kubernetes.api import has_gpus

    health = _look(arguments.directory, latest)
    files.write(None, f"{health.state}: {health.sentence}\n")
    if nodes is None:
        return health
    node = nodes.node(arguments.node)
    if not has_gpus(node):
        messages.say(
            f"Kubernetes knows of no GPU on {arguments.node}: its conditions stay as they are"
        )
        return health
    if arguments.conditions:
        nodes.set_conditions(node, health)
    if arguments.taint and (sentence := nodes.set_taint(node, health, arguments.limit)):
        files.write(None, f"{arguments.node}: {sentence}\n")
    return health


def _look(directory: str | None, latest: Families) -> NodeHealth:
    """Look at this node; envcheck's own failure is a state of its own, without metrics."""
    from msgspec import structs

    from ... import collection
    from ...checks.engine import diagnose
    from ...facts import snapshot as snapshots
    from ...fleet.kubernetes import health
    from ...reports import openmetrics
    from ...reports.model import build

    parts: dict[str, str | bytes] = {}
    try:
        snapshot = collection.collect().snapshot
        report = build(snapshot, diagnose(snapshot, health.CHECKS, []))
        found = health.judge(report)
        latest.families = [*openmetrics.families(structs.replace(report, status=found.state))]
        parts["snapshot.json"] = snapshots.dump(snapshot)
    except CouldNotLook as error:
        latest.families = []
        found = health.NodeHealth("silent", str(error))
    for kind, problem in found.conditions().items():
        parts[kind] = f"{problem} {time.time():.0f} {found.state}: {found.sentence}\n"
    for name, content in parts.items() if directory is not None else ():
        files.write(f"{directory}/{name}", content, "--directory")
    return found
