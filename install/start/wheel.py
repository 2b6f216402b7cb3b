"""Starting a command in an environment that the wheel mode installed: with what activation sets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NoReturn

from ...exit_codes import NotStarted
from ..transaction.layout import Version
from ..wheels import activation, child_env
from . import becoming
from .options import Options, own_variables


def run(version: Version, command: Sequence[str], options: Options) -> NoReturn:
    """Become the command. Raises NotStarted, NotExecutable, NotFound."""
    check(version)
    theirs = own_variables(options.environment, os.environ)
    becoming.become(command, {**activated(version, os.environ), **theirs})


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
