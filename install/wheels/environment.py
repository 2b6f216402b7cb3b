"""A virtual environment: made empty, and configured once the lock's packages are in it."""

from __future__ import annotations

from pathlib import Path

from ...exit_codes import PutBack
from ..catalogue.model import Stack
from ..lockfile import Lockfile
from ..pythons.interpreter import Interpreter
from . import activation, logs, pip_conf, uv

_DEADLINE = 300.0  # seconds; a slow network file system takes its time for a few hundred files


def create(directory: Path, interpreter: Interpreter, *, prompt: str = "") -> None:
    """Make an empty environment, without pip, in ``directory``; its parents are made too.

    prompt: what activation shows in place of the directory's name. Raises PutBack with uv's message; what it
    had made until then is left to the caller.
    """
    argv = [*uv.program(), "--no-config", "--offline", "venv", "--no-project", "--allow-existing"]
    argv += ["--prompt", prompt] if prompt else []
    result = logs.run(
        [*argv, "--python", interpreter.path, directory],
        log=logs.path(directory, "venv.log"),
        env=uv.settings(),
        deadline=_DEADLINE,
    )
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
