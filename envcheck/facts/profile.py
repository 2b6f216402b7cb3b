"""A profile: what a machine must be, as somebody wrote it into a file."""

from __future__ import annotations

from typing import Any, NamedTuple

Value = bool | int | float | str | list[Any]  # a list of these


class Wanted(NamedTuple):
    """One key of a profile."""

    value: Value


Tables = dict[str, list[dict[str, Wanted]]]


class Profile(NamedTuple):
    """where: the file. tables: a section's tables by its name, each {key: what is wanted}."""

    where: str
    tables: Tables
