"""A profile: what a machine must be, as somebody wrote it into a file."""

from __future__ import annotations

from typing import NamedTuple, Union

Value = Union[bool, int, float, str, list["Value"]]


class Wanted(NamedTuple):
    """One key of a profile, with the line that it stands in (0: not known)."""

    value: Value
    line: int = 0


class Profile(NamedTuple):
    """where: the file. tables: a section's tables by its name, each {key: what is wanted}."""

    where: str
    tables: dict[str, list[dict[str, Wanted]]]
