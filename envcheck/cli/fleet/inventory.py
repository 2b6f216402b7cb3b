"""The options that name machines for Ansible, of every command that asks or changes them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ...exit_codes import UsageError
from ..options import flag, option
from ..parser import Parser
from ..values import number

if TYPE_CHECKING:
    from ...fleet.engines.ansible import Inventory


def add_arguments(parser: Parser) -> None:
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


def wanted(arguments: argparse.Namespace) -> Inventory | None:
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
