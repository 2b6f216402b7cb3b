"""`envcheck explain [WORD]`: what a code means, why a proof is one, or which checks mention a word."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from ..checks.registry import CheckText, all_checks, areas
from ..exit_codes import ExitCode, UsageError
from ..suggestions import did_you_mean
from . import files
from .commands import lines_in_place
from .options import option
from .style import style_of

_LONG = 60  # characters of what was asked that an error repeats

EPILOG = """\
examples:
  envcheck explain driver    the codes of one area
  envcheck explain DRV-002   what it means, how it is judged, and the sources
  envcheck explain protobuf  the checks that mention a word, best first
  envcheck explain stack-file  how to describe a stack of your own"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    words = "a check's code, an area, a page (tensor-cores, stack-file) or words to search for"
    option(parser, "words", "WORD", f"{words} (default: all codes)", nargs="*")


def run(arguments: argparse.Namespace) -> int:
    asked = " ".join(arguments.words)
    text = _text(asked, arguments.words, style_of(sys.stdout)._asdict())
    files.write(None, lines_in_place(text))
    return ExitCode.HEALTHY


def _text(asked: str, words: list[str], style: dict[str, Any]) -> str:
    from ..checks.search import search
    from ..fleet.network.causes import CHECK
    from ..reports import explain

    checks = {check.code: check for check in (*all_checks(), CHECK)}
    if asked.upper() in checks:
        titles = {check.code: check.title for check in checks.values()}
        return explain.explain(checks[asked.upper()], titles, **style)
    if (page := asked.lower().replace(" ", "-")) in explain.PAGES:
        return explain.explain_page(page, **style)
    if listed := [check for check in checks.values() if _is_in(check, asked)]:
        return explain.explain_all(listed, **style)
    is_code = re.fullmatch(r"[A-Za-z]{2,5}-?\d+", asked)  # of no check
    if not is_code and (found := search(words, checks.values())):
        return explain.explain_found(asked, found, **style)
    near = did_you_mean(asked, [*checks, *areas(), *explain.PAGES])
    shown = asked if len(asked) < _LONG else f"{asked[:_LONG]}…"
    raise UsageError(f'no check mentions "{shown}"{near}', hint="envcheck explain lists all codes")


def _is_in(check: CheckText, asked: str) -> bool:
    """By nothing at all, its area, or the beginning of its code: "DRV", "drv-01"."""
    prefix = f"{asked}-".upper() if asked.isalpha() else asked.upper()
    return asked.lower() in ("", check.area) or ("-" in prefix and check.code.startswith(prefix))
