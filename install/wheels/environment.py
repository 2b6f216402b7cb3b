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
from . import activation, child_env, logs, pip_conf, uv

_DEADLINE = 300.0  # seconds; a slow network file system takes its time for a few hundred files

# Today's virtualenv makes environments from this Python on; uv does below, also without the venv module.
_VIRTUALENV_FROM = (3, 9)


def create(directory: Path, interpreter: Interpreter, *, prompt: str = "") -> None:
    """Make an empty environment, without pip, in ``directory``; its parents are made too.

    prompt: what activation shows in place of the directory's name. Raises PutBack with the tool's message;
    what it had made until then is left to the caller.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    name = ["--prompt", prompt] if prompt else []
    log = logs.path(directory, "venv.log")
    if number(interpreter.minor) < _VIRTUALENV_FROM:
        argv = [
            *uv.program(),
            "--no-config",
            "--offline",
            "venv",
            "--no-project",
            "--allow-existing",
        ]
        argv += [*name, "--python", interpreter.path, directory]
        result = logs.run(argv, log=log, env=uv.settings(), deadline=_DEADLINE)
    else:
        with scratch.directory() as folder:
            # A cache of its own: what the user's remembers of interpreters may be out of date.
            argv = [sys.executable, "-I", "-m", "virtualenv", "--app-data", folder / "app-data"]
            argv += ["--no-seed", "--no-download", "--no-periodic-update", "--no-vcs-ignore", *name]
            env = {**child_env.plain(), "VIRTUALENV_CONFIG_FILE": os.devnull}
            argv += ["--python", interpreter.path, directory]
            result = logs.run(argv, log=log, env=env, deadline=_DEADLINE)
    if not result.ok or not (directory / "bin" / "python").exists():
        raise PutBack(
            f"no virtual environment of {interpreter.path} could be made in {directory}: "
            + uv.sentence(result)
        )


def configure(directory: Path, stack: Stack, lock: Lockfile, public: str) -> None:
    """Give the environment its own pip.conf and what activation sets.

    public: the URL of the index that pip and uv are configured with. An environment gets nothing else:
    no library path, no package that is not locked.
    """
    pip_conf.write(directory, stack, lock, public)
    activation.write(directory, stack.environment)
