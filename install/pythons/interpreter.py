"""Python interpreters: what fitting needs to know of one."""

from __future__ import annotations

import msgspec


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """One that was asked and answered."""

    path: str  # as it was found: "/usr/bin/python3.8"
    version: str  # "3.8.18"
    found_in: str  # "--python", "PATH", "pyenv", "uv", "/usr/bin"
    implementation: str = "CPython"
    architecture: str = "x86_64"  # the process's own
    libc: str = "glibc"
    tags: list[str] = []  # wheel tags that it takes, best first: "cp38-cp38-manylinux_2_17_x86_64"
    has_venv: bool = True  # its venv module and ensurepip are there
    is_environment: bool = False  # itself inside a virtual environment
    free_threaded: bool = False

    @property
    def minor(self) -> str:
        """ "3.8" """
        return ".".join(self.version.split(".")[:2])
