"""Which installer is used, and the whole of an environment made with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...exit_codes import CouldNotLook
from .. import processes
from ..catalogue.model import Stack
from ..lockfile import Lockfile
from ..request import Request
from . import builds, child_env, pip, sdists, uv, uv_errors

if TYPE_CHECKING:
    from ..store.fetch import Fetcher

_PYTHON_DEADLINE = 1800.0  # seconds for 30 MB

# What decides from where and through what uv downloads a Python: the user's own word.
_OF_THE_USER = ("UV_PYTHON_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_")


def installer(request: Request, lock: Lockfile | None = None) -> str:
    """ "uv 0.13.9" or "pip 21.3.1": what will install."""
    if _with_uv(request):
        return uv.described()
    return "pip" if lock is None else pip.described(lock)


def check(lock: Lockfile, stack: Stack) -> None:
    """Raises Cannot where the lock wants something built that cannot be built here."""
    sdists.check_programs(lock, stack)


def install(
    directory: Path,
    lock: Lockfile,
    stack: Stack,
    request: Request,
    fetcher: Fetcher,
    beat: Callable[[], None] | None = None,
) -> None:
    """Everything that the lock names, into the empty environment: the wheels, then what is built.

    beat: called between looks, to show progress; what it raises ends the installer. Raises EnvcheckError.
    """
    todo = sdists.jobs(lock, stack)
    wheels = [package for package in lock.packages if package.file.kind == "wheel"]
    with_uv = _with_uv(request)
    if with_uv:
        uv.install(directory, lock, fetcher, wheels, beat=beat)
    else:
        pip.sync(directory, lock, fetcher, wheels, beat=beat)
    build = builds.with_uv if with_uv else builds.with_pip
    for job in todo:
        build(job, directory, lock, fetcher, beat)


def get_python(minor: str, environ: Mapping[str, str] | None = None) -> None:
    """Have uv download this Python to where uv keeps its own; ``finding`` finds it there afterwards.

    Raises CouldNotLook with uv's words. Certificates: those of the machine, as for all of envcheck.
    """
    source: Mapping[str, str] = os.environ if environ is None else environ
    path = uv.binary()
    if path is None:
        raise CouldNotLook(
            f"Python {minor} is not here, and there is no uv that could get it",
            hint=f"install Python {minor}, or uv (python3 -m pip install uv)",
        )
    kept = {k: v for k, v in source.items() if k.upper().startswith(_OF_THE_USER)}
    homes = {k: source[k] for k in ("XDG_DATA_HOME", "XDG_CACHE_HOME") if k in source}
    argv: list[str | Path] = [
        path,
        "--no-config",
        "--system-certs",
        "--no-progress",
        "--color",
        "never",
    ]
    argv += ["python", "install", "--no-bin", minor]
    env = {**child_env.plain(), **homes, **kept}
    result = processes.run(argv, deadline=_PYTHON_DEADLINE, env=env)
    if not result.ok:
        raise CouldNotLook(
            f"uv could not get Python {minor}: {uv_errors.sentence(result)}",
            hint=f"install Python {minor} by other means (pyenv, the distribution), and try again",
        )


def _with_uv(request: Request) -> bool:
    return request.installer == "uv" and uv.binary() is not None
