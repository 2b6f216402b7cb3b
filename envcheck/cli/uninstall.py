"""`envcheck uninstall`: removes a version, or an environment."""

from __future__ import annotations

import argparse

from ..exit_codes import ExitCode
from . import files, messages, options, questions
from .options import option

EPILOG = """\
examples:
  envcheck uninstall tensorflow  the environment, with all of its versions
  envcheck uninstall ngc-tf1     also its image, unless it was there before or
                                 something else uses it
  envcheck uninstall tensorflow --version 2.20.0"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    options.add_name(parser)
    words = "this version only; the start of its name is enough"
    option(parser, "--version", "VERSION", words, dest="only", default="")
    options.add_agreement(parser, asks=True)
    options.add_wait(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..install.reports import environments as report
    from ..install.transaction import roots, uninstall

    root = roots.find(arguments.name)
    only = roots.version_id(root, arguments.only)
    chosen = uninstall.check(root, only)
    if arguments.dry_run or not arguments.yes:
        what = report.going(str(root.path), chosen, not only, uninstall.bytes_of(chosen))
        if arguments.dry_run:
            files.write(None, f"Would be removed: {what}\n")
            return ExitCode.HEALTHY
        asked = f"Remove {what}? [y/N] "
        if not questions.agreed(asked):
            messages.say("nothing was removed")
            return ExitCode.INTERRUPTED
    done = uninstall.uninstall(root, only, wait=arguments.wait, tell=messages.say)
    files.show(arguments, done, report.uninstalled)
    return ExitCode.HEALTHY
