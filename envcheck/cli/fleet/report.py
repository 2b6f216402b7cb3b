"""`envcheck fleet report`: a directory of Snapshots, judged."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ...exit_codes import ExitCode
from .. import files
from ..parser import Parser
from ..style import style_for

if TYPE_CHECKING:
    from ...fleet.model import FleetResult

EPILOG = """\
examples:
  envcheck fleet report snapshots/"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("directory", metavar="DIR", help="with a NAME.json for each machine")
    files.add_output(parser)
    files.add_exit(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.folder import FleetFolder
    from ...fleet.judging import judged
    from ...fleet.reports import text
    from ...fleet.result import result

    files.check_writable(arguments.output)
    folder = FleetFolder(Path(arguments.directory))
    found = result(list(judged(folder, folder.members())))
    files.write(arguments.output, text.render(found, **style_for(arguments.output)._asdict()))
    return ExitCode.HEALTHY if arguments.exit_zero else exit_code(found, arguments.fail_on)


def exit_code(found: FleetResult, fail_on: str) -> ExitCode:
    """As of one machine; the worst wins, and silence is no health."""
    counts = found.counts
    warned = any(group.level == "warn" for group in found.groups)
    if counts.problems or (fail_on == "warn" and warned):
        return ExitCode.PROBLEMS
    return (
        ExitCode.COULD_NOT_LOOK if counts.could_not_look or counts.unanswered else ExitCode.HEALTHY
    )
