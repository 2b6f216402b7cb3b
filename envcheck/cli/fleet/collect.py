"""`envcheck fleet collect`: ask many machines for their Snapshots."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...exit_codes import ExitCode
from ..options import add_quiet, option
from ..parser import Parser
from . import asking

DIRECTORY = "fleet"

EPILOG = """\
examples:
  envcheck fleet collect -i hosts.ini
  envcheck fleet collect -i hosts.ini snapshots/ --level quick --limit gpu01,gpu02
  envcheck fleet collect -i inventory/ --forks 50 -- -u admin --ask-become-pass
  envcheck fleet collect --slurm --nodes gpu[01-16] -- --reservation=maint
then:
  envcheck fleet report fleet/"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    words = "directory for the Snapshots, NAME.json each (default: fleet)"
    option(parser, "directory", "DIR", words, nargs="?", default=DIRECTORY)
    asking.add_arguments(parser)
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    members = asking.ask(arguments, Path(arguments.directory))
    silent = [member for member in members if member.outcome != "answered"]
    return ExitCode.COULD_NOT_LOOK if silent else ExitCode.HEALTHY
