"""`envcheck explain [CODE]`: what a code means, or why a proof is one."""

from __future__ import annotations

import argparse
import difflib
import sys

from ..checks.registry import AREAS, all_checks
from ..exit_codes import ExitCode, UsageError
from . import files
from .style import style_of

EPILOG = """\
examples:
  envcheck explain          all codes, with what each is about
  envcheck explain driver   the codes of one area
  envcheck explain DRV-002  what it means, how it is judged, and who says so
  envcheck explain tensor-cores
                            why the bits prove that Tensor Cores did the work
  envcheck explain stack-file
                            how to describe a stack of your own for install"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "code",
        nargs="?",
        metavar="CODE",
        help="a check's code, an area or a page (tensor-cores, stack-file); without it: all codes",
    )


def run(arguments: argparse.Namespace) -> int:
    from ..reports import explain

    style = style_of(sys.stdout)._asdict()
    checks = {check.code: check for check in all_checks()}
    asked = arguments.code or ""
    if asked.upper() in checks:
        titles = {check.code: check.title for check in checks.values()}
        text = explain.explain(checks[asked.upper()], titles, **style)
    elif (page := asked.lower().replace(" ", "-")) in explain.PAGES:
        text = explain.explain_page(page, **style)
    elif not asked or asked.lower() in AREAS:
        chosen = [check for check in checks.values() if asked.lower() in ("", check.area)]
        text = explain.explain_all(chosen, **style)
    else:
        known = [*checks, *(page.upper() for page in explain.PAGES)]
        near = difflib.get_close_matches(asked.upper(), known, n=3, cutoff=0.5)
        near = [page.lower() if page.lower() in explain.PAGES else page for page in near]
        raise UsageError(
            f"there is no check with the code {asked}"
            + (f"; near it: {', '.join(near)}" if near else ""),
            hint="envcheck explain lists all codes",
        )
    files.write(None, text)
    return ExitCode.HEALTHY
