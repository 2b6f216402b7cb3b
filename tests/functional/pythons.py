"""The Pythons of this machine, old ones above all: what the collector has to run on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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


def bare_environment(folder: Path, python: str | Path = sys.executable) -> Path:
    """A virtual environment without pip: where its packages lie."""
    ran([python, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    return site


def put_distribution(
    site: Path, name: str, version: str, *files: str, entry_points: str = ""
) -> None:
    """What an installer writes down of a distribution with these files."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    if entry_points:
        (info / "entry_points.txt").write_text(entry_points)


def need(minor: int, major: int = 3) -> str:
    """The same; skips the test where there is none."""
    found = find(minor, major)
    if found is None:
        pytest.skip(f"there is no Python {major}.{minor} on this machine")
    return found
