"""The options that name machines, for Ansible or for Slurm, of every command that asks or changes them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...exit_codes import UsageError
from ..options import flag, option
from ..parser import Parser
from ..values import number, seconds

if TYPE_CHECKING:
    from ...fleet.engines.ansible import Inventory
    from ...fleet.engines.collecting import Members
    from ...fleet.engines.slurm import SlurmQuestion


def add_inventory(parser: Parser) -> None:
    """-i, --limit, --forks, -b, and what comes after "--"."""
    group = parser.add_argument_group(
        "machines of Ansible",
        "Your inventory, ansible.cfg, connection, become and vault settings apply as they are.\n"
        "Arguments after -- go to ansible-playbook: -- -u admin --ask-become-pass",
    )
    words = "an inventory file, directory or script, or a list: gpu1,gpu2, (repeatable)"
    option(group, "-i --inventory", "INVENTORY", words, action="append")
    option(group, "-l --limit", "PATTERN", "only the machines that match: gpu01,gpu02")
    words = "machines at a time (default: ansible.cfg's, else 5; 32 with --slurm)"
    option(group, "-f --forks", "N", words, type=number(1, 9999))
    flag(group, "-b --become", "run as root on the machines (ansible --become)")
    parser.rest = "further"


def add_arguments(parser: Parser) -> None:
    """And --slurm and what goes with it; --forks and what comes after "--" are as for Ansible."""
    add_inventory(parser)
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


def inventory(arguments: argparse.Namespace) -> Inventory | None:
    """The machines that were named; None where there is no -i. Raises UsageError."""
    from ...fleet.engines.ansible import Inventory

    if not arguments.inventory:
        for name in ("limit", "forks", "become", "further"):
            if getattr(arguments, name):
                option = "--" if name == "further" else f"--{name}"
                raise UsageError(f"{option} goes with -i INVENTORY")
        return None
    for source in arguments.inventory:
        if "," not in source and not Path(source).exists():
            raise UsageError(
                f"-i {source}: there is no such inventory",
                hint=f"for a machine's name, add a comma: -i {source},",
            )
    return Inventory(
        sources=arguments.inventory,
        limit=arguments.limit,
        forks=arguments.forks,
        become=arguments.become,
        further=arguments.further,
    )


def wanted(arguments: argparse.Namespace) -> Inventory | SlurmQuestion | None:
    """The same, or the nodes of --slurm."""
    if not arguments.slurm:
        for name in ("nodes", "immediate"):
            if getattr(arguments, name):
                raise UsageError(f"--{name} goes with --slurm")
        return inventory(arguments)
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


def named(arguments: argparse.Namespace, otherwise: str = "") -> Inventory | SlurmQuestion:
    """The same. Raises UsageError where none were named, or there is no Ansible for them."""
    from ...fleet.engines import ansible

    found = wanted(arguments)
    if found is None:
        raise UsageError(f"which machines? name them: -i INVENTORY, or --slurm{otherwise}")
    if isinstance(found, ansible.Inventory):
        ansible.find()  # before a directory is made for nothing
    return found


def ask(members: Members, machines: Inventory | SlurmQuestion, say: Callable[[str], None]) -> None:
    """By their engine. Raises UsageError, CouldNotLook."""
    from ...fleet.engines import ansible, ansible_collect, slurm_collect

    if isinstance(machines, ansible.Inventory):
        ansible_collect.ask(members, machines, say)
    else:
        slurm_collect.ask(members, machines, say, os.environ)
