"""`envcheck list`: what is installed, and in what state."""

from __future__ import annotations

import argparse

from .. import json_text
from ..exit_codes import ExitCode
from . import files, options
from .commands import lines_in_place
from .style import style_for

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
    found = listing()
    if arguments.format == "json":
        text = json_text.render(found)
    else:
        text = lines_in_place(environments.listing(found, **style_for(arguments.output)._asdict()))
    files.write(arguments.output, text)
    return ExitCode.HEALTHY
