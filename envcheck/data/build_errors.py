"""Why a build of the driver's module failed, by the words of its log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from . import table


class BuildError(NamedTuple):
    """says: the end of a sentence. what: what to do, as keys of system_commands.csv."""

    cause: str
    says: str
    text: str
    what: tuple[str, ...]


def build_error(lines: Iterable[str]) -> tuple[BuildError, str] | None:
    """The reason, and the line that gives it; None where no row of the table knows any."""
    lines = list(lines)
    for error, pattern in build_errors().items():
        line = next((line for line in lines if pattern.search(line)), None)
        if line is not None:
            return error, line
    return None


@cache
def build_errors() -> dict[BuildError, re.Pattern[str]]:
    """Every reason that is known, with the pattern of its line."""
    return {
        BuildError(row["cause"], row["says"], row["text"], tuple(row["what"].split())): re.compile(
            row["pattern"]
        )
        for row in table("build_errors")
    }
