"""argparse, with help that is short until more is asked for, and errors of one sentence."""

from __future__ import annotations

import argparse
import functools
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from .. import safe_text
from ..exit_codes import ExitCode
from ..suggestions import did_you_mean, nearest
from . import files, messages
from .style import columns, style_of

WIDEST = 100
NARROWEST = 30
LEFT_COLUMN = 28

# The report's few colours, so that help and report look the same.
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
    """An ArgumentParser for a terminal of any width, coloured where somebody reads it. An unknown option is
    this parser's error, not its parent's: the hint then names the right help."""

    usage_error = ExitCode.USAGE  # the exit code for a command line that cannot be read

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", _shaped(_Plain))
        if sys.version_info >= (3, 14):
            options.setdefault("color", False)  # its own: rich does it here
        super().__init__(**options)
        # The name under which everything after "--" is found, where others' options follow.
        self.rest = ""
        self._commands: argparse.Action | None = None
        self._positionals.title = "arguments"

    def show_commands(
        self,
        commands: argparse._SubParsersAction[Any],
        headings: Mapping[str, Collection[str]],
    ) -> None:
        """Let the help list the commands under these headings."""
        self._commands = commands
        entries = {entry.dest: entry for entry in commands._choices_actions}
        for heading, names in headings.items():
            group = self.add_argument_group(heading)
            group._group_actions += [entries[name] for name in names]
        self._action_groups.remove(self._optionals)
        self._action_groups.append(self._optionals)  # last

    def print_help(self, file: Any = None) -> None:
        """Write the help; in colour where both it and standard output go to a terminal."""
        if style_of(file or sys.stdout).colour and style_of(sys.stdout).colour:
            self.formatter_class = _shaped(_coloured())
        self._print_message(self.format_help(), file or sys.stdout)

    def format_help(self) -> str:
        """With usage in one line; commands are listed under their headings alone."""
        self.usage = self.usage or self._short_usage()
        commands = self._commands
        about = commands.help if commands else None
        if commands:
            commands.help = argparse.SUPPRESS
        try:
            return super().format_help()
        finally:
            if commands:
                commands.help = about

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words, rest = args, []
        if self.rest and args is not None and "--" in args:
            at = list(args).index("--")
            words, rest = args[:at], args[at + 1 :]
        found, unknown = super().parse_known_args(words, namespace)
        if self.rest:
            setattr(found, self.rest, list(rest))
        if unknown:
            self._refuse(unknown)
        return found, unknown

    def error(self, message: str) -> NoReturn:
        self._stop(message, f"{self.prog} --help")

    def _short_usage(self) -> str:
        """ "envcheck install [STACK] [options]" """
        words = [self.prog]
        for action in self._get_positional_actions():
            name = str(action.metavar or action.dest)
            words.append(f"[{name}]" if action.nargs in ("?", "*") else name)
        return " ".join([*words, "[options]"])

    def _refuse(self, unknown: Sequence[str]) -> NoReturn:
        """What no option and no argument has taken."""
        word = next((word for word in unknown if word.startswith("-")), unknown[0])
        if word.startswith("-"):
            option = word.partition("=")[0]
            near = did_you_mean(option, self._option_string_actions)
            self.error(f'there is no option "{option}"{near}')
        self._stop(f'unexpected argument "{word}"', f"{self.prog} --help")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        if isinstance(action, argparse._SubParsersAction):
            near = nearest(str(value), choices)
            self._stop(
                f'there is no command "{value}"{did_you_mean(str(value), choices)}',
                f"{self.prog} {near} --help" if near else f"{self.prog} --help lists the commands",
            )
        name = action.option_strings[-1] if action.option_strings else action.metavar
        self.error(
            f'{name} "{value}": not one of {", ".join(choices)}{did_you_mean(str(value), choices)}'
        )

    def _stop(self, sentence: str, hint: str) -> NoReturn:
        messages.show(f"{self.prog}: {safe_text.one_line(sentence)}\n")
        messages.hint(hint)
        raise SystemExit(self.usage_error)

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            files.write(None, message)
        else:
            super()._print_message(message, file)


class _Plain(argparse.RawDescriptionHelpFormatter):
    """Which breaks no name at its hyphen."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


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
