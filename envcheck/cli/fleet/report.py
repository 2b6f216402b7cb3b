"""`envcheck fleet report`: a directory of Snapshots, judged."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import files
from ..parser import Parser
from . import shown

EPILOG = """\
examples:
  envcheck fleet report snapshots/"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("directory", metavar="DIR", help="with a NAME.json for each machine")
    shown.add_arguments(parser)
    shown.add_profile(parser)
    files.add_exit(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.folder import FleetFolder

    shown.check(arguments)
    folder = FleetFolder(Path(arguments.directory))
    return shown.show(folder, folder.members(), arguments, profile=arguments.expect)
