"""Why a build of the driver's module failed, by the words of its log."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from . import rows


class BuildError(msgspec.Struct, frozen=True):
    """says: the end of a sentence. what: what to do, as keys of system_commands.csv."""

    cause: str
    pattern: str
    says: str
    text: str
    what: tuple[str, ...]


def build_error(lines: Iterable[str]) -> tuple[BuildError, str] | None:
    """The reason, and the line that gives it; None where no row of the table knows any."""
    lines = list(lines)
    for error in build_errors():
        line = next((line for line in lines if re.search(error.pattern, line)), None)
        if line is not None:
            return error, line
    return None


def build_errors() -> tuple[BuildError, ...]:
    return rows("build_errors", BuildError)
