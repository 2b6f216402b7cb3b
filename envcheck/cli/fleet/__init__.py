"""`envcheck fleet`: the same for many machines. A thin file a subcommand."""

from __future__ import annotations

import argparse
import importlib

from ..parser import Parser

SUBCOMMANDS = {
    "doctor": "say what is wrong with many machines, and which is the outlier",
    "collect": "ask many machines for their Snapshots",
    "report": "judge the Snapshots in a directory, however they came there",
    "baseline": "keep what the healthy ones have in common, as a profile for --expect",
    "slurm-prolog": "print a script for Slurm that drains a node whose GPUs or driver fail",
    "slurm-node": "drain this node in Slurm by the doctor's report, as that script does",
    "install": "install on many machines, in waves, each verified by its own doctor",
    "rollback": "go back, on many machines, to what was in use before a roll-out",
    "playbook": "copy the playbooks and roles that this runs",
}

EPILOG = """\
examples:
  envcheck fleet doctor -i hosts.ini   ask all, then say what is wrong
  envcheck fleet collect -i hosts.ini  ask the machines of an Ansible inventory
  envcheck fleet report snapshots/     a directory of NAME.json, from wherever
  envcheck fleet report new/ --since old/   and what changed
  envcheck fleet baseline snapshots/   what its healthy ones have in common
  envcheck fleet install tensorflow -i hosts.ini --plan"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    commands = parser.add_subparsers(metavar="COMMAND", dest="subcommand", required=True)
    for name, summary in SUBCOMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + "."
        )
        module = importlib.import_module(f".{name.replace('-', '_')}", __package__)
        module.add_arguments(command)
        command.set_defaults(run_subcommand=module.run)
    parser.show_commands(commands, {"commands": SUBCOMMANDS})


def run(arguments: argparse.Namespace) -> int:
    return int(arguments.run_subcommand(arguments))
