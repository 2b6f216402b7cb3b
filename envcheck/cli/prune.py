"""`envcheck prune`: room on the disk."""

from __future__ import annotations

import argparse
import sys

from .. import json_text
from ..exit_codes import ExitCode
from . import files, messages, options
from .commands import lines_in_place
from .options import option
from .style import style_of
from .values import number

EPILOG = """\
examples:
  envcheck prune --dry-run       what would be removed, what stays, and why
  envcheck prune                 the version in use and the one before it stay
  envcheck prune tf --keep 0     of this one, the version in use alone stays"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    options.add_name(parser, "default: all of them")
    words = "versions to keep beside the one in use (default: 1, for a rollback)"
    option(parser, "--keep", "N", words, type=number(0, 9999), default=1)
    options.add_agreement(parser)
    options.add_format(parser, json="for programs")


def run(arguments: argparse.Namespace) -> int:
    from ..install.prune import prune
    from ..install.reports import environments as report
    from ..install.transaction import roots

    chosen = None
    if arguments.name:
        chosen = [roots.find(arguments.name)]
    done = prune(
        chosen,
        keep=arguments.keep,
        dry_run=arguments.dry_run,
        tell=messages.say,
    )
    if arguments.format == "json":
        text = json_text.render(done)
    else:
        text = lines_in_place(report.pruned(done, **style_of(sys.stdout)._asdict()))
    files.write(None, text)
    return ExitCode.HEALTHY
