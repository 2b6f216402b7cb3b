"""Runs envcheck as a user does, with an environment that this machine's settings cannot leak into."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

from envcheck.__main__ import __file__ as MAIN
from envcheck.cli.main import run

PYTHON = sys.executable
LEAKS = ("PIP_", "UV_", "CONDA", "VIRTUAL_ENV", "PYTHON", "CUDA", "NVIDIA", "TF_", "XLA_", "LD_")


def environment(**changes: str) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(LEAKS)}
    return clean | {"PIP_CONFIG_FILE": os.devnull} | changes


def envcheck(
    *arguments: str | Path,
    cwd: Path | None = None,
    stdin: bytes = b"",
    timeout: float = 120,
    **changes: str,
) -> subprocess.CompletedProcess[bytes]:
    """One run of the command line; output is captured as bytes."""
    return subprocess.run(
        [PYTHON, "-m", "envcheck", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=environment(**changes),
        cwd=cwd,
        timeout=timeout,
        check=False,
    )


def called(
    *arguments: str | Path, stdin: bytes = b"", **changes: str
) -> subprocess.CompletedProcess[bytes]:
    """The same as a call of the command line's function: where no process of its own is looked at."""
    argv = [str(argument) for argument in arguments]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, environment(**changes), clear=True))
        stack.enter_context(mock.patch.object(tempfile, "tempdir", None))
        stack.enter_context(mock.patch.object(sys, "argv", [MAIN, *argv]))
        stack.enter_context(mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            code = run(argv)
        except SystemExit as ended:  # argparse's own
            code = int(ended.code or 0)
        for stream in (out, err):
            stream.flush()
    told, words = (stream.buffer.getvalue() for stream in (out, err))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(argv, code, told, words)


def refused(result: subprocess.CompletedProcess[bytes], code: int = 2) -> str:
    """The one sentence of a refusal: nothing on stdout, no traceback, the right exit code."""
    error = result.stderr.decode()
    assert result.returncode == code, error
    assert result.stdout == b""
    assert "Traceback" not in error
    sentences = [line for line in error.splitlines() if line and not line.startswith("hint: ")]
    assert len(sentences) == 1, error
    return sentences[0]
