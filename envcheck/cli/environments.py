"""What the commands on installed environments share: which one, how long to wait, and the question."""

from __future__ import annotations

import argparse
import sys

from ..exit_codes import UsageError
from . import messages
from .parser import seconds

_WORDS = {"": False, "y": True, "yes": True, "n": False, "no": False}


def add_name(
    parser: argparse.ArgumentParser, without: str = "default: the only one there is"
) -> None:
    parser.add_argument(
        "name",
        nargs="?",
        default="",
        metavar="ENVIRONMENT",
        help=f"a name in `envcheck list`, or a path ({without})",
    )


def add_wait(parser: argparse.ArgumentParser, default: float | None = None) -> None:
    limit = "until it is done" if default is None else f"{default:g}"
    parser.add_argument(
        "--wait",
        type=seconds(0, 86400),
        default=default,
        metavar="SECONDS",
        help=f"how long to wait for another envcheck in the same directory (default: {limit})",
    )


def add_other_owner(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-other-owner",
        action="store_true",
        help="use the directory even if it belongs to another user, or every user may write to it",
    )


def add_agreement(parser: argparse.ArgumentParser, *, asks: bool = False) -> None:
    """--yes and --dry-run, the same for every command that changes what is installed."""
    add_yes(parser, asks=asks)
    parser.add_argument("--dry-run", action="store_true", help="show what would happen, and stop")


def add_yes(parser: argparse.ArgumentParser, *, asks: bool = True) -> None:
    """asks: whether the command does, without it; the others take the option, so that scripts may give it."""
    about = "do not ask" if asks else "no effect: this command does not ask (accepted for scripts)"
    parser.add_argument("--yes", "-y", action="store_true", help=about)


def agreed(question: str) -> bool:
    """Whether the user says yes. Raises UsageError where there is no terminal to ask on."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("there is no terminal to ask on", hint="--yes does it without asking")
    return answered(question, default=False)


def answered(question: str, *, default: bool) -> bool:
    """Ask on the terminal until the answer is one. The end of the input (Ctrl-D) is a no."""
    while True:
        messages.show(question)
        try:
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            messages.show("\n")
            raise
        if not answer:
            messages.show("\n")
            return False
        word = answer.strip().lower()
        if word in _WORDS:
            return _WORDS[word] if word else default
        messages.show("Please answer y or n.\n")
