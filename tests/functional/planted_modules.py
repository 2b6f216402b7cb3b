"""A directory with Python modules under the names that a set-up script's Python would import.

Each that is run leaves its name behind.
"""

from __future__ import annotations

from pathlib import Path

NAMES = (
    "venv", "pip", "ensurepip", "virtualenv", "sitecustomize", "usercustomize",
    "sysconfig", "glob", "backend", "setuptools",
)  # fmt: skip


def plant(folder: Path) -> Path:
    """Make the directory; ``ran`` says which of its modules were run."""
    folder.mkdir()
    for name in NAMES:
        mark = folder / f"{name}.ran"
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    return folder


def ran(folder: Path) -> list[str]:
    return sorted(mark.stem for mark in folder.glob("*.ran"))
