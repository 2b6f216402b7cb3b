"""`envcheck fleet doctor`: many machines, asked where that is wanted, and judged."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...exit_codes import UsageError
from .. import options
from ..options import option
from ..parser import Parser
from . import asking, machines, shown
from .collect import DIRECTORY

EPILOG = """\
examples:
  envcheck fleet doctor -i hosts.ini           collect, then report what is wrong
  envcheck fleet doctor -i hosts.ini --limit gpu07    collect from one again, judge all
  envcheck fleet doctor -i hosts.ini --format html --output fleet-pages/
  envcheck fleet doctor                        judge the Snapshots in fleet/

exit codes: 0 no check failed, 1 one did, 2 wrong usage or unreadable input,
4 none failed, but a machine did not answer or checks could not run"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    words = (
        "directory of the Snapshots, NAME.json each (default: fleet); without -i or --slurm, those"
    )
    option(parser, "directory", "DIR", f"{words} in it are judged", nargs="?", default=DIRECTORY)
    asking.add_arguments(parser)
    shown.add_arguments(parser)
    options.add_exit(parser)


def run(arguments: argparse.Namespace) -> int:
    shown.check(arguments)
    path = Path(arguments.directory)
    if machines.wanted(arguments) is not None:
        asking.ask(arguments, path)
    elif arguments.repeat > 1:
        raise UsageError("--repeat goes with -i INVENTORY or --slurm")
    elif not path.exists():
        raise UsageError(
            f"{path}: there is no such directory, and no machines were named",
            hint="envcheck fleet doctor -i INVENTORY collects from machines first (--slurm: from a cluster)",
        )
    return shown.show(path, arguments)
