"""argparse, with help that is good to look at and errors of one sentence."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import Any, NoReturn

from .. import safe_text
from ..exit_codes import ExitCode
from . import files, words
from .style import columns, style_of

WIDEST = 100
NARROWEST = 30
LEFT_COLUMN = 28

# The report's few colours, so that help and report look alike.
_STYLES = {
    "argparse.args": "cyan",
    "argparse.groups": "bold",
    "argparse.help": "default",
    "argparse.metavar": "cyan",
    "argparse.prog": "bold",
    "argparse.syntax": "bold",
    "argparse.text": "default",
    "argparse.default": "default",
}


class Parser(argparse.ArgumentParser):
    """An ArgumentParser for a terminal of any width, coloured where somebody reads it."""

    usage_error = ExitCode.USAGE  # the exit code for a command line that cannot be read

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", _shaped(argparse.RawDescriptionHelpFormatter))
        super().__init__(**options)

    def print_help(self, file: Any = None) -> None:
        """Write the help; in colour where both it and standard output go to a terminal."""
        if style_of(file or sys.stdout).colour and style_of(sys.stdout).colour:
            self.formatter_class = _shaped(_coloured())
        super().print_help(file)

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            files.write(None, message)
        else:
            super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        words.show(f"{self.prog}: {safe_text.one_line(message)}\n")
        words.hint(f"{self.prog} --help")
        raise SystemExit(self.usage_error)


def _shaped(formatter: type[argparse.HelpFormatter]) -> Any:
    width = max(min(columns() - 2, WIDEST), NARROWEST)
    return functools.partial(formatter, width=width, max_help_position=LEFT_COLUMN)


def _coloured() -> type[argparse.HelpFormatter]:
    from rich_argparse import RawDescriptionRichHelpFormatter

    class Formatter(RawDescriptionRichHelpFormatter):
        group_name_formatter = str
        styles = {**RawDescriptionRichHelpFormatter.styles, **_STYLES}
        text_markup = help_markup = False

    return Formatter
