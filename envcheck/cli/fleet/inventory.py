"""The options that name machines for Ansible, of every command that asks or changes them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ...exit_codes import UsageError
from ..parser import Parser

if TYPE_CHECKING:
    from ...fleet.engines.ansible import Inventory


def add_arguments(parser: Parser) -> None:
    """-i, --limit, --forks, -b, and what comes after "--"."""
    group = parser.add_argument_group(
        "machines of Ansible",
        "Your inventory, ansible.cfg, connection, become and vault settings apply as they are.\n"
        "Arguments after -- go to ansible-playbook: -- -u admin --ask-become-pass",
    )
    group.add_argument(
        "-i",
        "--inventory",
        action="append",
        metavar="INVENTORY",
        help="an inventory file, directory or script, or a list: gpu1,gpu2, (repeatable)",
    )
    group.add_argument(
        "-l", "--limit", metavar="PATTERN", help="only the machines that match: gpu01,gpu02"
    )
    group.add_argument(
        "-f",
        "--forks",
        type=_count,
        metavar="N",
        help="machines at a time (default: ansible.cfg's, else 5; 32 with --slurm)",
    )
    group.add_argument(
        "-b", "--become", action="store_true", help="run as root on the machines (ansible --become)"
    )
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


def _count(text: str) -> int:
    if not (text.isdecimal() and 0 < int(text) < 10000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 9999")
    return int(text)
