"""`envcheck fleet report`: Snapshots that are there, judged."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ...exit_codes import ExitCode, UsageError
from .. import files
from ..parser import Parser
from . import shown

EPILOG = """\
examples:
  envcheck fleet report snapshots/             a NAME.json of each machine
  envcheck fleet report snapshots/ -v          and a line for each
  envcheck fleet report snapshots/ --format html --output pages/
  envcheck fleet report new/ --since old/      and what changed since then

exit codes: 0 no check failed, 1 one did, 2 wrong usage or unreadable input,
4 none failed, but a machine did not answer or checks could not run"""

MORE = """\
  clush -w gpu[01-16] python3 - < collector.py | envcheck fleet report -
  kubectl logs --prefix --tail=-1 -l app=envcheck | envcheck fleet report -"""


def add_arguments(parser: Parser) -> None:
    parser.epilog, parser.more = EPILOG, MORE
    parser.add_argument(
        "directory",
        metavar="DIR",
        help="directory with a NAME.json for each machine; - is standard input, with NAME: in front of each"
        " line, as clush and pdsh print it",
    )
    parser.add_argument(
        "--since",
        metavar="DIR",
        help="also list what changed since the Snapshots in this directory (text and JSON)",
    )
    shown.add_arguments(parser)
    shown.add_profile(parser)
    files.add_exit(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.folder import FleetFolder

    shown.check(arguments)
    if arguments.directory == "-":
        return _of_standard_input(arguments)
    folder = FleetFolder(Path(arguments.directory))
    return shown.show(
        folder,
        shown.members(folder),
        arguments,
        profile=arguments.expect,
        since=arguments.since,
    )


def _of_standard_input(arguments: argparse.Namespace) -> ExitCode:
    from ... import scratch
    from ...fleet import arriving
    from ...fleet.folder import FleetFolder

    if sys.stdin.isatty():
        raise UsageError("-: standard input is a terminal, and brings no Snapshots")
    with scratch.directory() as directory:
        folder = FleetFolder(directory)
        try:
            members = arriving.unpack(sys.stdin.buffer, folder)  # type: ignore[arg-type]
        except OSError as error:
            raise UsageError(f"standard input: {error.strerror or error}") from None
        return shown.show(
            folder, members, arguments, profile=arguments.expect, since=arguments.since
        )
