"""`envcheck fleet rollback`: what was in use before a roll-out, on many machines, in waves."""

from __future__ import annotations

import argparse

from ...exit_codes import ExitCode
from .. import files
from ..options import option
from ..parser import Parser
from . import inventory, rollout_options

EPILOG = """\
examples:
  envcheck fleet rollback -i hosts.ini               what the last roll-out replaced
  envcheck fleet rollback -i hosts.ini --limit gpu01,gpu02 --waves 100%

A machine that uses another version by now, or had none before, is left
unchanged and reports that. A second run never moves to a newer version."""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    words = "only if the last roll-out was of this environment"
    option(parser, "environment", "NAME", words, nargs="?", default="")
    inventory.add_arguments(parser)
    rollout_options.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.engines.ansible import CONTENT
    from ...fleet.rollout import running, waves

    waved, max_fail = waves.parse(arguments.waves), waves.max_fail(arguments.max_fail)
    named = rollout_options.machines_of(arguments)
    folder = rollout_options.kept(arguments, "rollback", repr(named.sources).encode())
    question = "Go back on all machines of the inventory (as far as --limit lets)?"
    if not rollout_options.agreed(arguments, question):
        files.write(None, "Nothing was touched.\n")
        return ExitCode.INTERRUPTED
    variables = running.variables(waved, max_fail, folder / "logs", arguments.deadline)
    variables["envcheck_environment"] = arguments.environment
    return rollout_options.carry_out(
        arguments, CONTENT / "rollback.yml", named, [], variables, folder, None
    )
