"""Keeps activation scripts away until a version is verified: what is not installed cannot be activated."""

from __future__ import annotations

import os
from pathlib import Path

from .layout import Version

_NAMES = ("activate", "deactivate")  # activate.csh, Activate.ps1, activate_this.py …


def hide(version: Version) -> None:
    """Move the scripts in bin/ out of sight; those that were hidden before and written anew are replaced."""
    if not (version.directory / "bin").is_dir():
        return
    version.activate.mkdir(parents=True, exist_ok=True)
    _move(version.directory / "bin", version.activate)


def reveal(version: Version) -> None:
    """Put them where a user looks for them."""
    if not version.activate.is_dir():
        return
    _move(version.activate, version.directory / "bin")
    version.activate.rmdir()


def _move(source: Path, target: Path) -> None:
    if not source.is_dir():
        return
    for name in sorted(os.listdir(source)):  # noqa: PTH208 - names are all that is asked for
        if name.lower().startswith(_NAMES):
            (source / name).replace(target / name)
