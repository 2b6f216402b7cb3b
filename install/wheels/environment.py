"""A virtual environment: made empty, and configured once the lock's packages are in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ... import scratch
from ...exit_codes import PutBack
from ..catalogue.model import Stack
from ..lockfile import Lockfile
from ..pythons.interpreter import Interpreter, number
from . import activation, child_env, logs, pip_conf

_DEADLINE = 300.0  # seconds; a slow network file system takes its time for a few hundred files

# Today's virtualenv makes environments from this Python on; below, the interpreter's own venv does.
_VIRTUALENV_FROM = (3, 9)


def create(directory: Path, interpreter: Interpreter, *, prompt: str = "") -> None:
    """Make an empty environment, without pip, in ``directory``; its parents are made too.

    prompt: what activation shows in place of the directory's name. Raises PutBack with the tool's
    message; what it had made until then is left to the caller.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    own: list[str | Path] = [interpreter.path, "-I", "-m", "venv", "--without-pip"]
    with scratch.directory() as folder:
        if number(interpreter.minor) >= _VIRTUALENV_FROM:
            # A cache of its own: what the user's remembers of interpreters may be out of date.
            own = [sys.executable, "-I", "-m", "virtualenv", "--with-traceback"]
            own += ["--python", interpreter.path, "--app-data", folder / "app-data"]
            own += ["--no-seed", "--no-download", "--no-periodic-update", "--no-vcs-ignore"]
        own += ["--prompt", prompt] if prompt else []
        result = logs.run(
            [*own, directory],
            log=logs.path(directory, "venv.log"),
            env={**child_env.plain(), "VIRTUALENV_CONFIG_FILE": os.devnull},
            deadline=_DEADLINE,
        )
    if not result.ok or not (directory / "bin" / "python").exists():
        exited = result.outcome == "exited" and result.code >= 0
        lines: list[str] = result.tail(1).splitlines() if exited else []
        raise PutBack(
            f"no virtual environment of {interpreter.path} could be made in {directory}: "
            + (lines[-1].strip() if lines else f"it {result.describe()}"),
            hint=""
            if interpreter.has_venv
            else f"install the venv module of Python {interpreter.minor}",
        )


def configure(directory: Path, stack: Stack, lock: Lockfile, public: str) -> None:
    """Give the environment its own pip.conf and what activation sets.

    public: the URL of the index that pip and uv are configured with. An environment gets nothing else:
    no library path, no package that is not locked.
    """
    pip_conf.write(directory, stack, lock, public)
    activation.write(directory, stack.environment)
