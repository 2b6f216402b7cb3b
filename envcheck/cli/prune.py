"""`envcheck prune`: room on the disk."""

from __future__ import annotations

import argparse

from ..exit_codes import ExitCode
from . import files, messages, options
from .options import option
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
    keep, dry = arguments.keep, arguments.dry_run
    done = prune(chosen, keep=keep, dry_run=dry, tell=messages.say)
    files.show(arguments, done, report.pruned)
    return ExitCode.HEALTHY
