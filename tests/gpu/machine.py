"""Runs envcheck on a GPU machine, which may need its own LD_LIBRARY_PATH to find the driver."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import cli
import pytest

# The driver's nodes, or WSL's: where they are and nothing answers, the tests fail.
NODES = [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("dxg")]
on_a_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not NODES, reason="there is no NVIDIA GPU on this machine"),
]

HERE = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}


def envcheck(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    return cli.envcheck(*arguments, timeout=900, **HERE)
