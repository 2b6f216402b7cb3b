"""`envcheck fleet report`: Snapshots that are there, judged."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import options
from ..options import option
from ..parser import Parser
from . import shown

EPILOG = """\
examples:
  envcheck fleet report snapshots/             NAME.json of each machine, from any source
  envcheck fleet report snapshots/ -v          and a line for each
  envcheck fleet report snapshots/ --format html --output pages/
  envcheck fleet report new/ --since old/      and what changed since then

exit codes: 0 no check failed, 1 one did, 2 wrong usage or unreadable input,
4 none failed, but a machine did not answer or checks could not run"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    option(parser, "directory", "DIR", "directory with a NAME.json for each machine")
    words = (
        "also list what changed since the Snapshots in this directory, and since when each problem"
    )
    words += " and outlier is seen (repeatable)"
    option(parser, "--since", "DIR", words, action="append", default=[])
    shown.add_arguments(parser)
    options.add_exit(parser)


def run(arguments: argparse.Namespace) -> int:
    shown.check(arguments)
    return shown.show(Path(arguments.directory), arguments, arguments.since)
