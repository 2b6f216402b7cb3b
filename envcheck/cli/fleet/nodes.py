"""The options that name nodes for Slurm."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ...exit_codes import UsageError
from ..options import flag, option
from ..parser import Parser
from ..values import seconds

if TYPE_CHECKING:
    from ...fleet.engines.slurm import SlurmQuestion


def add_arguments(parser: Parser) -> None:
    """--slurm and what goes with it; --forks and what comes after "--" are as for Ansible."""
    group = parser.add_argument_group(
        "nodes of Slurm",
        "srun starts a job for each node, with all GPUs of the node. Arguments after --\n"
        "go to srun: -- -p a100 --reservation=maint --exclusive",
    )
    flag(group, "--slurm", "collect from the nodes of this Slurm cluster")
    words = "only these nodes: gpu[01-16,20] (default: all of the partition, else of the cluster)"
    option(group, "--nodes", "LIST", words)
    words = "a node that Slurm does not allocate within this time is reported as busy (default: 15)"
    option(group, "--immediate", "SECONDS", words, type=seconds(1, 86400))


def wanted(arguments: argparse.Namespace) -> SlurmQuestion | None:
    """The nodes that were named; None where there is no --slurm. Raises UsageError."""
    if not arguments.slurm:
        for name in ("nodes", "immediate"):
            if getattr(arguments, name):
                raise UsageError(f"--{name} goes with --slurm")
        return None
    from ...fleet.engines import slurm

    for name in ("inventory", "limit", "become"):
        if getattr(arguments, name):
            raise UsageError(f"--{name} is for machines of Ansible, --slurm for nodes of Slurm")
    return slurm.SlurmQuestion(
        nodes=arguments.nodes or "",
        options=arguments.further,
        immediate=arguments.immediate or slurm.IMMEDIATE,
        at_once=arguments.forks or slurm.AT_ONCE,
    )
