"""``bundle.json``: what a bundle holds, and what it is for."""

from __future__ import annotations

from typing import Literal

import msgspec

FORMAT = 2
NAME = "bundle.json"
LOCK = "pylock.toml"
STACK = "stack.toml"
FILES = "files"  # the folder for the lock's files
OWN = "envcheck"  # the folder for envcheck itself
PYTHON = "python"  # the folder for an interpreter


class BundleFile(msgspec.Struct, frozen=True):
    """One file of a bundle."""

    sha256: str
    size: int  # bytes


class BundleIndex(msgspec.Struct, frozen=True, kw_only=True):
    """It lists every file but itself."""

    kind: Literal["envcheck bundle"] = "envcheck bundle"
    format: int = FORMAT
    envcheck: str
    stack: str
    release: str
    python: str = ""
    carries: str = ""  # the interpreter in it, as uv calls it: "cpython-3.13.9-linux-x86_64-gnu"
    architecture: str
    created_at: str  # the lock's: the same lock gives the same bundle
    pythons: list[str]  # that envcheck's own wheels are for
    files: dict[str, BundleFile]
