"""Python versions as users write them after ``--python``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from packaging.version import Version

from .interpreter import Interpreter

_VERSION = re.compile(r"(?:[Pp]ython)?(\d+(?:\.\d+){0,2}(?:(?:a|b|rc)\d+)?)")


def asked_version(python: str) -> str:
    """ "3.8" for "3.8" or "python3.8"; "" for what is no version."""
    found = _VERSION.fullmatch(python)
    return found[1] if found else ""


def matches(interpreter: Interpreter, version: str) -> bool:
    """Whether an interpreter is of a version that may leave its end open: "3", "3.8", "3.8.18"."""
    return interpreter.version == version or interpreter.version.startswith(f"{version}.")


def number(minor: str) -> tuple[int, int]:
    """ "3.13" as something that sorts after "3.9"; (0, 0) for what is no version."""
    found = re.match(r"(\d+)\.(\d+)", minor)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def is_prerelease(version: str) -> bool:
    """Whether an interpreter's own version names an alpha, a beta or a release candidate."""
    found = _VERSION.match(version)
    return found is not None and Version(found[1]).is_prerelease


def listed(words: Sequence[str], last: str = "and") -> str:
    """ "3.8, 3.9 and 3.11" """
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
