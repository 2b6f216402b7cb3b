"""The Pythons of this machine, old ones above all: what the collector has to run on."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from processes import ran


def heavy(*minors: int) -> list[ParameterSet]:
    """The same test with older Pythons and their pips: CI's."""
    return [pytest.param(minor, marks=pytest.mark.heavy) for minor in minors]


@cache
def find(minor: int, major: int = 3) -> str | None:
    """An interpreter of that Python that really starts: on PATH, from pyenv, or from uv."""
    name = f"python{major}.{minor}"
    pyenv = os.environ.get("PYENV_ROOT") or "~/.pyenv"
    candidates = [shutil.which(name)]
    for home in (f"{pyenv}/versions", "~/.local/share/uv/python"):
        found = Path(home).expanduser().glob(f"*/bin/{name}")
        candidates += [str(path) for path in sorted(found)]
    for candidate in filter(None, candidates):
        asked = [candidate, "-c", "import sys; print(sys.version_info[1])"]
        try:
            result = ran(asked, text=True)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if result.returncode == 0 and result.stdout.strip() == str(minor):
            return candidate
    return None


def need(minor: int, major: int = 3) -> str:
    """The same; skips the test where there is none."""
    found = find(minor, major)
    if found is None:
        pytest.skip(f"there is no Python {major}.{minor} on this machine")
    return found
