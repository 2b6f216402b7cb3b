"""What `envcheck run` and `envcheck shell` share: which version, the options of a start, and the errors."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from ..exit_codes import EnvcheckError, ExitCode, NotStarted
from ..install.start import finding
from ..install.start import options as start_options
from ..install.start.options import Options
from ..install.transaction import lock
from ..install.transaction.layout import Version
from .options import option
from .parser import Parser

CODES = """\
exit codes: the command's own; 125 envcheck or the engine failed (no such
environment, a GPU that did not arrive, wrong usage), 126 the command cannot
be executed, 127 there is no such command; 128 + N for a signal N"""


def add_arguments(parser: Parser) -> None:
    """The options of both."""
    parser.usage_error = ExitCode.NOT_STARTED
    which = parser.add_argument_group("environment (default: the one installed last)")
    named = which.add_mutually_exclusive_group()
    option(named, "--name", "NAME", "its name in `envcheck list`", default="")
    option(named, "--path", "DIR", "its directory", default="")
    words = "a version, or the start of its name (default: the one in use)"
    option(which, "--version", "VERSION", words, default="")
    how = parser.add_argument_group("start")
    words = "set a variable; without a value, a container gets the one it has here"
    repeated = {"action": "append", "default": []}
    variable = start_options.variable
    option(how, "--env -e", "NAME[=VALUE]", words, type=variable, **repeated)
    inside = parser.add_argument_group("containers only")
    words = "also mount this (the working directory always is)"
    option(inside, "--volume -v", "FROM:TO[:ro]", words, type=start_options.mount, **repeated)
    words = "an option of the engine: --engine-arg=-p8888:8888, --engine-arg=--shm-size=8g"
    option(inside, "--engine-arg", "ARGUMENT", words, **repeated)


def options(arguments: argparse.Namespace) -> Options:
    """What was asked for."""
    return Options(**{name: getattr(arguments, name) for name in Options._fields})


def version(arguments: argparse.Namespace) -> Version:
    """The one to start, which is seen to be in use from here on. Raises NotStarted, UsageError."""
    found = find(arguments)
    lock.hold(found)
    return found


def find(arguments: argparse.Namespace) -> Version:
    """The one that is meant. Raises NotStarted, UsageError."""
    return finding.find(arguments.name or arguments.path, arguments.version)


@contextmanager
def own_codes() -> Iterator[None]:
    """Let every failure of envcheck's own leave with a code that the command's is not taken for."""
    try:
        yield
    except EnvcheckError as error:
        if error.exit_code >= ExitCode.NOT_STARTED:
            raise
        raise NotStarted(str(error), error.hint) from None
