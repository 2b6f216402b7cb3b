"""The user's own shell in an environment of the wheel mode.

The user's rc files are read first and the environment is activated after them, so that a PATH that they set
undoes nothing. Each shell has its way to be told; one that is not known here starts with the variables alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

from ..transaction.layout import Version
from ..wheels import activation
from . import becoming, wheel
from .options import Options, own_variables

_FILES = Path(__file__).parent / "shell"
_POSIX = ("sh", "dash", "ash", "ksh", "ksh93", "mksh")


class Shell(NamedTuple):
    """A command, and its whole environment."""

    argv: list[str]
    environment: dict[str, str]


def run(version: Version, options: Options, *, interactive: bool) -> NoReturn:
    """Become the user's shell. Raises NotStarted, NotFound, NotExecutable."""
    wheel.check(version)
    theirs = own_variables(options.environment, os.environ)
    found = shell(version, {**os.environ, **theirs}, interactive=interactive)
    becoming.become(found.argv, found.environment)


def shell(version: Version, environ: Mapping[str, str], *, interactive: bool) -> Shell:
    """The shell that $SHELL names. interactive: somebody types into it."""
    program = environ.get("SHELL") or "/bin/sh"
    activate = version.directory / "bin" / "activate"
    name = Path(program).name
    if not interactive or not activate.is_file():
        return Shell([program], wheel.activated(version, environ))
    if name == "fish":
        read_it = "source " + activation.fish_quoted(f"{activate}.fish")
        return Shell([program, "--init-command", read_it], dict(environ))
    told = {**environ, "ENVCHECK_ACTIVATE": str(activate)}
    if name == "bash":
        return Shell([program, "--rcfile", str(_FILES / "bash.sh")], told)
    if name == "zsh":
        theirs = {"ENVCHECK_ZDOTDIR": environ["ZDOTDIR"]} if "ZDOTDIR" in environ else {}
        return Shell([program], {**told, **theirs, "ZDOTDIR": str(_FILES)})
    if name in _POSIX:
        theirs = {"ENVCHECK_USER_ENV": environ["ENV"]} if environ.get("ENV") else {}
        return Shell([program], {**told, **theirs, "ENV": str(_FILES / "posix.sh")})
    return Shell([program], wheel.activated(version, environ))
