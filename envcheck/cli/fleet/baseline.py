"""`envcheck fleet baseline`: what a healthy fleet looks like, as a profile."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...exit_codes import CouldNotLook, ExitCode
from ...findings import shell
from .. import files, messages
from ..parser import Parser
from . import shown

EPILOG = """\
examples:
  envcheck fleet baseline snapshots/ --output fleet.toml
then, for these machines and new ones:
  envcheck fleet report snapshots/ --expect fleet.toml
  envcheck doctor --expect fleet.toml"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "directory", metavar="DIR", help="directory with a NAME.json for each machine"
    )
    files.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.baseline import baseline
    from ...fleet.folder import FleetFolder
    from ...fleet.result import result

    files.check_writable(arguments.output)
    folder = FleetFolder(Path(arguments.directory))
    members = folder.members()
    found = baseline(result(shown.judged_machines(folder, members, None, quiet=False)))
    if not found.kept:
        why = f": {found.left_out[0][0]}: {found.left_out[0][1]}" if found.left_out else ""
        raise CouldNotLook(
            f"{arguments.directory}: no machine in it is healthy{why}",
            hint=f"envcheck fleet report {shell.word(arguments.directory)} says what is wrong",
        )
    files.write(arguments.output, found.text)
    if found.left_out:
        names = ", ".join(name for name, _why in found.left_out[:6])
        more = f" and {len(found.left_out) - 6} more" if len(found.left_out) > 6 else ""
        messages.say(
            f"made of {len(found.kept)} of {len(members)} machines; left out, and why stands in its first"
            f" lines: {names}{more}"
        )
    return ExitCode.HEALTHY
