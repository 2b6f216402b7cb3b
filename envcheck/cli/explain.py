"""`envcheck explain [CODE]`: what a code means."""

from __future__ import annotations

import argparse
import difflib
import sys

from ..exit_codes import ExitCode, UsageError
from . import files
from .style import style_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "code", nargs="?", metavar="CODE", help="e.g. DRV-002; without it: all codes"
    )


def run(arguments: argparse.Namespace) -> int:
    from ..checks.registry import all_checks
    from ..reports import explain

    style = style_of(sys.stdout)
    checks = {check.code: check for check in all_checks()}
    if arguments.code is None:
        files.write(None, explain.explain_all(checks.values(), **style._asdict()))
        return ExitCode.HEALTHY
    code = arguments.code.upper()
    if code not in checks:
        near = difflib.get_close_matches(code, checks, n=3, cutoff=0.5)
        raise UsageError(
            f"there is no check with the code {arguments.code}"
            + (f"; near it: {', '.join(near)}" if near else ""),
            hint="envcheck explain lists all codes",
        )
    titles = {check.code: check.title for check in checks.values()}
    files.write(None, explain.explain(checks[code], titles, **style._asdict()))
    return ExitCode.HEALTHY
