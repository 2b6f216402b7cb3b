"""`envcheck list`: what is installed, and in what state."""

from __future__ import annotations

import argparse

from ..exit_codes import ExitCode
from . import files, options

EPILOG = """\
examples:
  envcheck list                every environment, its versions and their sizes
  envcheck list --format json  the same, for programs"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    options.add_format(parser, json="for programs")
    options.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..install.reports import environments
    from ..install.transaction.listing import listing

    files.check_writable(arguments.output)
    files.show(arguments, listing(), environments.listing)
    return ExitCode.HEALTHY
