"""Starting a command, or the user's own shell, in an environment of wheels: with what activation sets.

bash reads the user's rc file first and activates the environment after it, so that a PATH that it sets undoes
nothing; another shell starts with the variables alone.
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

_RC_FILE = Path(__file__).parent / "shell" / "bash.sh"


class Shell(NamedTuple):
    """A command, and its whole environment."""

    argv: list[str]
    environment: dict[str, str]


def run(version: Version, command: Sequence[str], options: Options) -> NoReturn:
    """Become the command. Raises NotStarted, NotExecutable, NotFound."""
    _check(version, options)
    become(command, {**activated(version, os.environ), **options.own_variables(os.environ)})


def run_shell(version: Version, options: Options, *, interactive: bool) -> NoReturn:
    """Become the user's shell. Raises NotStarted, NotFound, NotExecutable."""
    _check(version, options)
    theirs = options.own_variables(os.environ)
    become(*shell(version, {**os.environ, **theirs}, interactive=interactive))


def activated(version: Version, environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` as activation would leave it."""
    changed = {k: v for k, v in environ.items() if k != "PYTHONHOME"}
    changed |= activation.read(version.directory)
    changed["PATH"] = child_env.bin_first(version.directory, environ)
    changed["VIRTUAL_ENV"] = str(version.directory)
    changed["VIRTUAL_ENV_PROMPT"] = version.directory.parent.name
    return changed


def shell(version: Version, environ: Mapping[str, str], *, interactive: bool) -> Shell:
    """The shell that $SHELL names. interactive: somebody types into it."""
    program = environ.get("SHELL") or "/bin/sh"
    activate = version.directory / "bin" / "activate"
    if interactive and activate.is_file() and Path(program).name == "bash":
        own = {**environ, "ENVCHECK_ACTIVATE": str(activate)}
        return Shell([program, "--rcfile", str(_RC_FILE)], own)
    return Shell([program], activated(version, environ))


def _check(version: Version, options: Options) -> None:
    """Raises NotStarted for an environment without its Python, where a command would take another one, and
    for an option that only containers have a use for."""
    for name in ("volume", "engine-arg"):
        if getattr(options, name.replace("-", "_")):
            raise NotStarted(f"--{name}: {version.id} is an environment of wheels, not a container")
    if not os.access(version.python, os.X_OK):
        raise NotStarted(
            f"{version.directory}: this environment is broken: {version.python.name} is not in its bin/,"
            " or the interpreter that it leads to is gone",
            hint="envcheck list shows its state; envcheck install builds it again",
        )
