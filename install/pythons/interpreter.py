"""Python interpreters: what fitting needs to know of one, its versions, and the wheels that it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec
from packaging.tags import compatible_tags, cpython_tags
from packaging.version import Version

# What a user writes after ``--python``, and what an interpreter says of itself.
_VERSION = re.compile(r"(?:[Pp]ython)?(\d+(?:\.\d+){0,2}(?:(?:a|b|rc)\d+)?)")

# PEP 600: the older names of these, and the oldest glibc that any wheel is tagged for.
_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
_OLDEST_GLIBC = {"x86_64": (2, 5), "i686": (2, 5)}
_OLDEST_ELSEWHERE = (2, 17)


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
    free_threaded: bool = False

    @property
    def minor(self) -> str:
        """ "3.8" """
        return ".".join(self.version.split(".")[:2])

    @property
    def is_prerelease(self) -> bool:
        """Whether its version names an alpha, a beta or a release candidate."""
        found = _VERSION.match(self.version)
        return found is not None and Version(found[1]).is_prerelease

    def matches(self, version: str) -> bool:
        """Whether it is of a version that may leave its end open: "3", "3.8", "3.8.18"."""
        return self.version == version or self.version.startswith(f"{version}.")


def asked_version(python: str) -> str:
    """ "3.8" for "3.8" or "python3.8"; "" for what is no version."""
    found = _VERSION.fullmatch(python)
    return found[1] if found else ""


def number(minor: str) -> tuple[int, int]:
    """ "3.13" as something that sorts after "3.9"; (0, 0) for what is no version."""
    found = re.match(r"(\d+)\.(\d+)", minor)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def listed(words: Sequence[str], last: str = "and") -> str:
    """ "3.8, 3.9 and 3.11" """
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def tags(
    version: str, abi: str, architecture: str, glibc: str, *, debug: bool = False
) -> list[str]:
    """The tags of the wheels that a CPython takes, best first: "cp38-cp38-manylinux_2_17_x86_64".

    abi: its SOABI, "cpython-36m-x86_64-linux-gnu". glibc: "2.36"; "" where it has another C library, for
    which only wheels without machine code are listed. Empty where version or ABI cannot be read.
    """
    python = number(version)
    flavour = re.match(r"cpython-(\w+)", abi)
    if not any(python) or flavour is None:
        return []
    abis = [f"cp{flavour[1]}"]
    if debug and python >= (3, 8):  # a debug build also loads the extensions of a normal one
        abis.append(abis[0].replace("d", ""))
    platforms = [f"linux_{architecture}", *_manylinux(architecture, glibc)]
    own = cpython_tags(python, abis, platforms)
    pure = compatible_tags(python, f"cp{python[0]}{python[1]}", platforms)
    return [str(tag) for listed in (own, pure) for tag in listed]


def plain_tags(minor: str, architecture: str, glibc: str) -> list[str]:
    """The tags of a release build of CPython."""
    flavour = "m" if number(minor) < (3, 8) else ""  # pymalloc's mark, until 3.7
    return tags(minor, f"cpython-{minor.replace('.', '')}{flavour}", architecture, glibc)


def _manylinux(architecture: str, glibc: str) -> Iterator[str]:
    found = re.fullmatch(r"2\.(\d+)(\..*)?", glibc)
    if found is None:
        return
    oldest = _OLDEST_GLIBC.get(architecture, _OLDEST_ELSEWHERE)
    for minor in range(int(found[1]), oldest[1] - 1, -1):
        yield f"manylinux_2_{minor}_{architecture}"
        if legacy := _LEGACY.get((2, minor)):
            yield f"{legacy}_{architecture}"
