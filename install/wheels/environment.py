"""A virtual environment: made empty, and configured once the lock's packages are in it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from ...exit_codes import PutBack
from .. import processes
from ..catalogue.model import Stack
from ..lockfile import Lockfile
from ..pythons.interpreter import Interpreter
from . import activation, child_env, logs, pip_conf, uv

_DEADLINE = 300.0  # seconds; a slow network file system takes its time for a few hundred files

_BASE = "import sys; print(getattr(sys, 'base_prefix', sys.prefix))"


def create(directory: Path, interpreter: Interpreter, *, prompt: str = "") -> None:
    """Make an empty environment, without pip, in ``directory``; its parents are made too.

    prompt: what activation shows in place of the directory's name. Raises PutBack with what the tool
    said; what it had made until then is left to the caller.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    named = ["--prompt", prompt] if prompt else []
    if uv.binary() is not None:
        # It takes a directory that has files in it, as the interpreter's own venv does.
        options = ["--no-project", "--allow-existing", "--python", _base(interpreter)]
        result = uv.run_offline(["venv", *options, *named, directory])
        _keep_log(directory, result)
        if result.ok:
            for name in (".gitignore", "CACHEDIR.TAG"):  # it is neither a checkout's nor a cache
                (directory / name).unlink(missing_ok=True)
    else:
        argv: list[str | Path] = [
            _base(interpreter),
            "-I",
            "-m",
            "venv",
            "--without-pip",
            *named,
            directory,
        ]
        result = processes.run(argv, deadline=_DEADLINE, env=child_env.plain())
        _keep_log(directory, result)
    if not result.ok or not (directory / "bin" / "python").exists():
        raise PutBack(
            f"no virtual environment of {interpreter.path} could be made in {directory}: "
            f"{_said(result)}",
            hint=""
            if interpreter.has_venv or uv.binary() is not None
            else f"install the venv module of Python {interpreter.minor}",
        )


def configure(directory: Path, stack: Stack, lock: Lockfile, public: str) -> None:
    """Give the environment its own pip.conf and what activation sets.

    public: the URL of the index that pip and uv are configured with. An environment gets nothing else:
    no library path, no package that is not locked.
    """
    pip_conf.write(directory, stack, lock, public)
    activation.write(directory, stack.environment)


def _keep_log(directory: Path, result: Any) -> None:
    said = result.stdout + result.stderr
    if said and directory.is_dir():
        with logs.Log(directory, "venv.log") as kept:
            kept.close(said)


def _base(interpreter: Interpreter) -> str:
    """The interpreter outside of environments: one made from another would break with that one."""
    if not interpreter.is_environment:
        return interpreter.path
    argv = [interpreter.path, "-I", "-c", _BASE]
    result = processes.run(argv, deadline=_DEADLINE, env=child_env.plain())
    prefix = Path(os.fsdecode(result.stdout.strip())) if result.ok else None
    found = shutil.which(f"python{interpreter.minor}", path=str(prefix / "bin")) if prefix else None
    return found or interpreter.path


def _said(result: Any) -> str:
    if result.outcome != "exited" or result.code < 0:
        return f"it {result.describe()}"
    lines: list[str] = result.tail(1).splitlines()
    return lines[-1].strip() if lines else f"it {result.describe()}"
