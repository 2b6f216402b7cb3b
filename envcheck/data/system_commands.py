"""How distributions do what remedies ask for: install a driver, find a file's package, rebuild what boots."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from . import table


def system_commands(what: str, distributions: Iterable[str]) -> tuple[str, ...]:
    """The commands for ``what`` on the first of these distributions that has some; () where none has.

    distributions: os-release's ID and ID_LIKE, in that order. Placeholders ({names}) are str.format's.
    """
    rows = _rows(what)
    return next((rows[name] for name in distributions if name in rows), ())


@cache
def _rows(what: str) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(command.strip() for command in row["commands"].split(";;"))
        for row in table("system_commands")
        if row["what"] == what
        for name in row["on"].split()
    }
