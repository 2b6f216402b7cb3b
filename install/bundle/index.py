"""``bundle.json``: what a bundle holds, and what it is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

FORMAT = 2  # from 2 on with a lock for each Python
NAME = "bundle.json"
LOCK = "pylock.toml"  # of a bundle for one Python
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
    mode: Literal["wheel", "container"] = "wheel"
    stack: str
    release: str
    python: str = ""  # of the wheel mode, where it is for one
    locks: dict[str, str] = {}  # of the wheel mode: version of Python → the name of its lock
    systems: dict[str, list[str]] = {}  # version of Python → systems that come with it: "Debian 12"
    not_for: dict[str, str] = {}  # system → why its own Python does not do
    sizes: dict[str, int] = {}  # version of Python → bytes of the files of its lock
    carries: str = (
        ""  # the name of the interpreter in it, as uv calls it: "cpython-3.13.9-linux-x86_64-gnu"
    )
    image: str = ""  # of the container mode: "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    digest: str = ""  # its manifest's, "sha256:…"
    architecture: str
    created_at: str  # the lock's: the same lock gives the same bundle
    pythons: list[str]  # that envcheck's own wheels are for
    files: dict[str, BundleFile]

    @property
    def lock_names(self) -> dict[str, str]:
        """Version of Python → the name of its lock; a bundle of format 1 has one."""
        return self.locks or ({self.python: LOCK} if self.python else {})


def lock_names(minors: Sequence[str]) -> dict[str, str]:
    """What the locks for these versions of Python are called."""
    if len(minors) == 1:
        return {minors[0]: LOCK}
    return {minor: f"pylock.py{minor.replace('.', '')}.toml" for minor in minors}
