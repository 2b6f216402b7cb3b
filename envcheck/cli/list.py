"""`envcheck list`: what is installed, and in what state."""

from __future__ import annotations

import argparse
import sys

from ..exit_codes import ExitCode
from . import files
from .style import style_of

EPILOG = """\
examples:
  envcheck list                every environment, its versions and their sizes
  envcheck list --format json  the same, for programs"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "--format",
        choices=("terminal", "json"),
        default="terminal",
        metavar="FORMAT",
        help="terminal (default: for people), or json",
    )
    files.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..install.transaction.listing import listing
    from ..reports import environments

    files.check_writable(arguments.output)
    found = listing()
    if arguments.format == "json":
        text = environments.render_json(found)
    else:
        text = environments.listing(found, **style_of(sys.stdout)._asdict())
    files.write(arguments.output, text)
    return ExitCode.HEALTHY
