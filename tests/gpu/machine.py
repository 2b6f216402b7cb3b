"""Runs envcheck on a GPU machine, which may need its own LD_LIBRARY_PATH to find the driver."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import cli

HERE = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}


def envcheck(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    return cli.envcheck(*arguments, timeout=900, **HERE)
