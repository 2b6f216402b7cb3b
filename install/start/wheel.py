"""Starting a command, or the user's own shell, in an environment of wheels: with what activation sets.

bash and fish read the user's rc files first and activate the environment after them, so that a PATH that they
set undoes nothing; another shell starts with the variables alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from ...exit_codes import NotStarted
from ..transaction.layout import Version
from ..wheels import activation, child_env
from .exec import become
from .options import Options

_FILES = Path(__file__).parent / "shell"


class Shell(NamedTuple):
    """A command, and its whole environment."""

    argv: list[str]
    environment: dict[str, str]


def run(version: Version, command: Sequence[str], options: Options) -> NoReturn:
    """Become the command. Raises NotStarted, NotExecutable, NotFound."""
    check(version)
    theirs = options.own_variables(os.environ)
    become(command, {**activated(version, os.environ), **theirs})


def check(version: Version) -> None:
    """Raises NotStarted for an environment without its Python: a command would take another one."""
    if not os.access(version.python, os.X_OK):
        raise NotStarted(
            f"{version.directory}: this environment is broken: {version.python.name} is not in its bin/,"
            " or the interpreter that it leads to is gone",
            hint="envcheck list shows its state; envcheck install builds it again",
        )


def activated(version: Version, environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` as activation would leave it."""
    changed = {k: v for k, v in environ.items() if k != "PYTHONHOME"}
    changed |= activation.read(version.directory)
    changed["PATH"] = child_env.bin_first(version.directory, environ)
    changed["VIRTUAL_ENV"] = str(version.directory)
    changed["VIRTUAL_ENV_PROMPT"] = version.directory.parent.name
    return changed


def run_shell(version: Version, options: Options, *, interactive: bool) -> NoReturn:
    """Become the user's shell. Raises NotStarted, NotFound, NotExecutable."""
    check(version)
    theirs = options.own_variables(os.environ)
    become(*shell(version, {**os.environ, **theirs}, interactive=interactive))


def shell(version: Version, environ: Mapping[str, str], *, interactive: bool) -> Shell:
    """The shell that $SHELL names. interactive: somebody types into it."""
    program = environ.get("SHELL") or "/bin/sh"
    activate = version.directory / "bin" / "activate"
    name = Path(program).name
    if not interactive or not activate.is_file():
        return Shell([program], activated(version, environ))
    if name == "fish":
        read_it = "source " + activation.fish_quoted(f"{activate}.fish")
        return Shell([program, "--init-command", read_it], dict(environ))
    if name == "bash":
        own = {**environ, "ENVCHECK_ACTIVATE": str(activate)}
        return Shell([program, "--rcfile", str(_FILES / "bash.sh")], own)
    return Shell([program], activated(version, environ))
