"""`envcheck fleet rollback` and `uninstall`: what a roll-out did is taken back on many machines, in waves."""

from __future__ import annotations

import argparse

from ...exit_codes import ExitCode
from ..options import option
from ..parser import Parser
from . import rollout_options

ROLLBACK = """\
examples:
  envcheck fleet rollback -i hosts.ini               what the last roll-out replaced
  envcheck fleet rollback -i hosts.ini --limit gpu01,gpu02 --waves 100%

A machine that uses another version by now, or had none before, is left
unchanged and reports that; if all do, the exit code is 4. A second run never
moves to a newer version."""

UNINSTALL = """\
examples:
  envcheck fleet uninstall -i hosts.ini              what the last roll-out installed
  envcheck fleet uninstall tensorflow -i hosts.ini   this environment

Each machine's own envcheck removes the environment; then that envcheck and the
copied packages are removed, unless other environments are left there. A machine
without a roll-out reports that; if all do, the exit code is 4."""


def add_arguments(parser: Parser) -> None:
    parser.epilog, words = {
        "rollback": (ROLLBACK, "only if the last roll-out was of this environment"),
        "uninstall": (UNINSTALL, "this environment (default: what was rolled out last)"),
    }[parser.prog.split()[-1]]
    option(parser, "environment", "NAME", words, nargs="?", default="")
    rollout_options.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the playbook of the command's name."""
    what = arguments.subcommand
    named = rollout_options.machines_of(arguments)
    folder = rollout_options.kept(arguments, what, repr(named.sources).encode())
    question = {"rollback": "Go back", "uninstall": "Remove what was rolled out"}[what]
    where = "on all machines of the inventory (as far as --limit lets)?"
    if not rollout_options.agreed(arguments, f"{question} {where}"):
        return ExitCode.INTERRUPTED
    environment = arguments.environment
    return rollout_options.carry_out(
        arguments, what, named, folder, envcheck_environment=environment
    )
