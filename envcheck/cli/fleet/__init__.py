"""`envcheck fleet`: the same for many machines. A thin file a subcommand."""

from __future__ import annotations

import argparse
import importlib

from ..parser import Parser

SUBCOMMANDS = {
    "doctor": "report what is wrong on many machines, and which are outliers",
    "collect": "collect the Snapshots of many machines",
    "report": "judge the Snapshots in a directory, and list what changed since others",
    "slurm-prolog": "print a script for Slurm that drains a node whose GPUs or driver fail",
    "slurm-node": "drain this node in Slurm if the doctor's report says so (for that script)",
    "kubernetes-node": "look at this node of Kubernetes at an interval, and set its conditions",
    "network": "test the network between machines: each pair, then all together",
    "install": "install on many machines, in waves, each verified by its own doctor",
    "rollback": "go back to what was in use before a roll-out, on many machines",
    "uninstall": "remove what a roll-out installed, on many machines",
}

EPILOG = """\
examples:
  envcheck fleet doctor -i hosts.ini   collect, then report what is wrong
  envcheck fleet collect -i hosts.ini  only collect
  envcheck fleet report snapshots/     NAME.json files from any source
  envcheck fleet report new/ --since old/   and what changed
  envcheck fleet install tensorflow -i hosts.ini --plan"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    commands = parser.add_subparsers(metavar="COMMAND", dest="subcommand", required=True)
    for name, summary in SUBCOMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + "."
        )
        file = "take_back" if name in ("rollback", "uninstall") else name.replace("-", "_")
        module = importlib.import_module(f".{file}", __package__)
        module.add_arguments(command)
        command.set_defaults(run_subcommand=module.run)
    parser.show_commands(commands, {"commands": SUBCOMMANDS})


def run(arguments: argparse.Namespace) -> int:
    return int(arguments.run_subcommand(arguments))
