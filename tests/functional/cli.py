"""Runs envcheck as a user does, with an environment that this machine's settings cannot leak into."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


def refused(result: subprocess.CompletedProcess[bytes], code: int = 2) -> str:
    """The one sentence of a refusal: nothing on stdout, no traceback, the right exit code."""
    error = result.stderr.decode()
    assert result.returncode == code, error
    assert result.stdout == b""
    assert "Traceback" not in error
    sentences = [line for line in error.splitlines() if line and not line.startswith("hint: ")]
    assert len(sentences) == 1, error
    return sentences[0]
