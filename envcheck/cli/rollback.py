"""`envcheck rollback`: the version that was in use before."""

from __future__ import annotations

import argparse

from ..exit_codes import ExitCode
from . import files, messages, options
from .options import option

EPILOG = """\
examples:
  envcheck rollback tensorflow   the version before; once more: forward again
  envcheck rollback tensorflow --to 2.20.0"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    options.add_name(parser)
    words = "this version; the start of its name is enough"
    option(parser, "--to", "VERSION", words, default="")
    options.add_agreement(parser)
    options.add_wait(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..install.reports import environments as report
    from ..install.transaction import roots
    from ..install.transaction.current import destination, rollback

    root = roots.find(arguments.name)
    to = roots.version_id(root, arguments.to)
    if arguments.dry_run:
        before, chosen = destination(root, to)
        files.write(None, f"Would be in use: {chosen}, in place of {before or 'none'}\n")
        return ExitCode.HEALTHY
    done = rollback(root, to, wait=arguments.wait, tell=messages.say)
    files.show(arguments, done, report.rolled_back)
    return ExitCode.HEALTHY
