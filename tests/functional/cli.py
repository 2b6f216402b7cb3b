"""Runs envcheck as a user does, with an environment that this machine's settings cannot leak into."""

from __future__ import annotations

import atexit
import faulthandler
import importlib
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import NoReturn

from envcheck import cli, collection, install, reports
from envcheck.__main__ import __file__ as MAIN
from envcheck.__main__ import main
from envcheck.checks.registry import all_checks
from envcheck.collection import Collected

PYTHON = sys.executable
LEAKS = ("PIP_", "UV_", "CONDA", "VIRTUAL_ENV", "PYTHON", "CUDA", "NVIDIA", "TF_", "XLA_", "LD_")

# Of these, nothing that is seen of a machine depends.
HOMES = {"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "NO_COLOR"}
HOMES |= {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}


def environment(**changes: str) -> dict[str, str]:
    """This process's, less what would change a result: pip's configuration, what was installed last."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(LEAKS)}
    if "HOME" not in changes and "XDG_STATE_HOME" not in os.environ:
        clean["XDG_STATE_HOME"] = _state_home()
    return clean | {"PIP_CONFIG_FILE": os.devnull} | changes


@cache
def _state_home() -> str:
    folder = tempfile.mkdtemp(prefix="envcheck-tests-")
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    return folder


def envcheck(
    *arguments: str | Path,
    cwd: Path | None = None,
    stdin: bytes = b"",
    timeout: float = 120,
    **changes: str,
) -> subprocess.CompletedProcess[bytes]:
    """One run of the command line; output is captured as bytes.

    In a fork of this process, which has imported envcheck already: a new Python takes 0.4 s for that. What an
    installation looks at first, the machine, is looked at once, unless a variable may change what is seen.
    """
    argv = [str(argument) for argument in arguments]
    env = environment(**changes)
    if any(name.startswith("PYTHON") for name in changes):  # a Python reads these when it starts
        return subprocess.run(
            [PYTHON, "-m", "envcheck", *argv],
            input=stdin, capture_output=True, env=env, cwd=cwd, timeout=timeout, check=False,
        )  # fmt: skip
    _import_all()
    machine = None if {*changes} - HOMES else _machine()
    with ExitStack() as stack:
        streams = [stack.enter_context(tempfile.TemporaryFile(buffering=0)) for _ in range(3)]
        streams[0].write(stdin)
        streams[0].seek(0)
        child = os.fork()
        if child == 0:
            if machine is not None:
                collection.collect = partial(_collect, collection.collect, machine)
            _become(argv, env, cwd, [stream.fileno() for stream in streams])
        status = _ended(child, timeout)
        if status is None:
            raise subprocess.TimeoutExpired(argv, timeout)
        out, err = (os.pread(s.fileno(), os.fstat(s.fileno()).st_size, 0) for s in streams[1:])
    return subprocess.CompletedProcess(argv, os.waitstatus_to_exitcode(status), out, err)


@cache
def _import_all() -> None:
    for package in (cli, install, reports):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
    all_checks()


@cache
def _machine() -> Collected:
    return collection.collect(redact=False)


def _collect(
    look: Callable[..., Collected], machine: Collected, *target: object, **options: object
) -> Collected:
    """What was seen already where the machine alone is asked for, as by survey.py."""
    asks = {**options, "progress": None} == {"redact": False, "progress": None}
    return machine if asks and not target else look(*target, **options)


def _ended(child: int, timeout: float) -> int | None:
    """Its wait status; None where it had to be killed."""
    end = time.monotonic() + timeout
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.002)


def _become(argv: list[str], env: dict[str, str], cwd: Path | None, streams: list[int]) -> NoReturn:
    """What a new `python -m envcheck` would be: nothing of the tests' own process is left."""
    code = 99
    try:
        faulthandler.disable()
        atexit._clear()
        for number in (signal.SIGINT, signal.SIGHUP):
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            stream = open(number, "w" if number else "r", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        sys.stderr.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd or ".")
        tempfile.tempdir = None
        sys.argv = [MAIN, *argv]
        for module in [m for name, m in sys.modules.items() if name.startswith("envcheck")]:
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
        try:
            code = main()
        except SystemExit as ended:  # argparse's own
            code = int(ended.code or 0)
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def refused(result: subprocess.CompletedProcess[bytes], code: int = 2) -> str:
    """The one sentence of a refusal: nothing on stdout, no traceback, the right exit code."""
    error = result.stderr.decode()
    assert result.returncode == code, error
    assert result.stdout == b""
    assert "Traceback" not in error
    sentences = [line for line in error.splitlines() if line and not line.startswith("hint: ")]
    assert len(sentences) == 1, error
    return sentences[0]
