"""The options that commands share, each declared once."""

from __future__ import annotations

import argparse
from typing import Any

from ..exit_codes import UsageError
from .values import seconds

Container = argparse._ActionsContainer  # a parser or a group of it


def option(parser: Container, names: str, metavar: str, help: str, **more: Any) -> None:
    """An option with a value. names: with a space between them."""
    parser.add_argument(*names.split(), metavar=metavar, help=help, **more)


def flag(parser: Container, names: str, help: str) -> None:
    parser.add_argument(*names.split(), action="store_true", help=help)


# What is looked at.


def add_target(parser: Container) -> None:
    words = "check this environment or interpreter, image:REF or container:ID"
    default = "(default: the active environment, else the one installed last)"
    option(parser, "--target", "WHERE", f"{words} {default}")


def add_from(parser: Container, what: str) -> None:
    option(parser, "--from", "FILE", f"{what} (- is standard input)", dest="source")


def add_container(parser: Container) -> None:
    from ..install.engine import ENGINES

    words = "engine of --target image:REF or container:ID (default: the one that has it)"
    parser.add_argument("--engine", choices=ENGINES, help=words)
    words = "entrypoint of --target image:REF instead of its own; --entrypoint= for none"
    option(parser, "--entrypoint", "PROGRAM", words)


def refuse_container(arguments: argparse.Namespace, other: str) -> None:
    """Raises UsageError for what add_container added, beside an option with which nothing is started."""
    for name in ("engine", "entrypoint"):
        if getattr(arguments, name) is not None:
            why = f"with {other} nothing is started"
            raise UsageError(f"--{name} and {other} cannot be used together: {why}")


def add_deadline(parser: Container, what: str = "each probe") -> None:
    words = f"time limit for {what} (default: its own, and longer if CPUs are busy)"
    option(parser, "--deadline", "SECONDS", words, type=seconds(0.1, 3600))


# What is written.


def add_output(parser: Container) -> None:
    option(parser, "--output", "FILE", "write to this file instead of standard output")


def add_save(parser: Container) -> None:
    option(parser, "--save", "FILE", "also write the Snapshot")


def add_format(parser: Container, **others: str) -> argparse.Action:
    """--format: text, or one of the others, each with what the help says of it."""
    *first, last = [f"{name} ({what})" for name, what in others.items()]
    choices = ", ".join(["text (default: for people)", *first])
    return parser.add_argument(
        "--format",
        choices=("text", *others),
        default="text",
        metavar="FORMAT",
        help=f"{choices} or {last}",
    )


class _Formats(tuple[str, ...]):
    """The names of report formats; of other packages', which are asked for only where need be, too."""

    def __contains__(self, name: object) -> bool:
        from .. import plugins  # which takes longer to import than the rest of --help

        found = plugins.entry_points("envcheck.reports")
        return name in tuple(self) or any(name == entry.name for entry in found)


def add_report(parser: argparse.ArgumentParser) -> None:
    """What the doctor's report looks like and where it goes."""
    of_doctor = {
        "json": "for programs",
        "junit": "for CI servers",
        "markdown": "for a ticket",
        "openmetrics": "for Prometheus",
        "html": "a page",
    }
    action = add_format(parser, **of_doctor)
    action.choices = _Formats(action.choices or ())
    add_detail(parser, "all evidence, all areas, and what was skipped")
    add_output(parser)
    add_save(parser)


def add_detail(parser: argparse.ArgumentParser, everything: str) -> None:
    """-v and -q. ``everything``: what the first of them shows."""
    detail = parser.add_mutually_exclusive_group()
    flag(detail, "-v --verbose", everything)
    flag(detail, "-q --quiet", "the verdict alone, no progress")


def add_quiet(parser: Container) -> None:
    flag(parser, "-q --quiet", "only the result, questions and errors")


def add_exit(parser: Container) -> None:
    """What a verdict makes of the exit code."""
    words = "exit with 1 on a fail (default), on degraded too, or on any warn"
    levels = ("warn", "degraded", "fail")
    option(parser, "--fail-on", "WHAT", words, choices=levels, default="fail")
    flag(parser, "--exit-zero", "exit with 0 whatever is found")


# What is installed.


def add_name(parser: Container, without: str = "default: the only one there is") -> None:
    words = f"a name in `envcheck list`, or a path ({without})"
    option(parser, "name", "ENVIRONMENT", words, nargs="?", default="")


def add_wait(parser: Container, default: float | None = None) -> None:
    limit = "until it is done" if default is None else f"{default:g}"
    words = f"how long to wait for another envcheck in the same directory (default: {limit})"
    option(parser, "--wait", "SECONDS", words, type=seconds(0, 86400), default=default)


def add_yes(parser: Container, *, asks: bool = True) -> None:
    """asks: whether the command does, without it; the others take the option, so that scripts may give it."""
    about = "do not ask" if asks else "no effect: this command does not ask (accepted for scripts)"
    flag(parser, "-y --yes", about)


def add_agreement(parser: Container, *, asks: bool = False) -> None:
    """--yes and --dry-run, the same for every command that changes what is installed."""
    add_yes(parser, asks=asks)
    flag(parser, "--dry-run", "show what would happen, and stop")
