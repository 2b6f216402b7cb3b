"""Reads the command line, runs one command, and turns every error into a sentence and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from .. import __version__
from ..exit_codes import EnvcheckError, ExitCode
from . import words
from .parser import Parser
from .uninterrupted import uninterrupted

# name → (one line of help, module): a command's own module is imported only when it is called.
COMMANDS = {
    "doctor": "say what is wrong with this machine, why, and what to type",
    "collect": "write a Snapshot of the facts, to diagnose here or elsewhere",
    "demo": "what the doctor says of simulated machines, for whoever has no GPU at hand",
    "releases": "what could be installed here, and why the rest could not",
    "install": "an environment with NVIDIA's or upstream TensorFlow, verified by the doctor",
    "bundle": "write everything for a machine without a network into one directory or tar",
    "run": "a command in what was installed, started as it should be",
    "shell": "a shell in what was installed",
    "list": "what envcheck has installed, its size, and its state",
    "rollback": "go back to the version of an environment before this one",
    "uninstall": "remove an environment, or a version of it",
    "prune": "remove old versions, and fetched files that none needs",
    "explain": "what a check's code means, and where the knowledge comes from",
    "schema": "the JSON Schema of the Snapshot or of the report",
    "collector": "write the collector as one file for machines without envcheck",
    "completion": "the shell's completion script",
}

EPILOG = """\
start here:
  envcheck doctor                      this machine, and the active environment
  envcheck releases                    what could be installed on it
  envcheck install --mode wheel        an environment, verified by the doctor
  envcheck install --mode container    the same, as NVIDIA's container
  envcheck run python train.py         a command in it
  envcheck COMMAND --help              what else a command can do

exit codes: 0 healthy or done, 1 problems were found, 2 wrong usage or
    unreadable input, 3 this machine cannot: nothing was touched, 4 envcheck
    could not look, 5 failed and put back as it was, 6 failed and something is
    left, 130 interrupted; of envcheck run and shell: the command's own, or
    125, 126, 127"""


def run(argv: Sequence[str]) -> int:
    """Run one command line; returns the exit code. KeyboardInterrupt is the caller's."""
    try:
        if argv and argv[0] == "help":
            argv = [*argv[1:], "--help"]
        parser = build_parser(argv)
        arguments = parser.parse_args(argv)
        if arguments.command is None:
            parser.print_help(sys.stderr)
            return ExitCode.USAGE
        return int(arguments.run(arguments))
    except EnvcheckError as error:
        words.say(str(error))
        if error.hint:
            words.hint(error.hint)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes a sentence and a code
        if os.environ.get("ENVCHECK_DEBUG"):
            words.trace()
        words.say(f"internal error: {type(error).__name__}: {error}")
        words.hint("please report it, with what ENVCHECK_DEBUG=1 makes of it")
        in_its_place = argv[:1] and argv[0] in ("run", "shell")  # other codes are the command's own
        return ExitCode.NOT_STARTED if in_its_place else ExitCode.COULD_NOT_LOOK


def build_parser(argv: Sequence[str] = ()) -> Parser:
    """The whole parser, or, where argv names a command, only that command's arguments."""
    parser = Parser(
        prog="envcheck",
        description="Take a machine with NVIDIA GPUs to a TensorFlow environment that is verified, from the"
        " driver up to the framework.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "-V",
        "--version",
        action="version",
        version=f"envcheck {__version__}",
        help="show envcheck's version and exit",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    named = next((word for word in argv if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + "."
        )
        if named in (None, name) and not (named is None and argv):
            with uninterrupted():
                module = importlib.import_module(f".{name}", __package__)
            module.add_arguments(command)
            command.set_defaults(run=module.run)
            parser.usage_error = command.usage_error  # what no command knows is told by this one
    return parser
