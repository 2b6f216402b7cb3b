"""Settings whose values are wrong, and where: settings.csv, a source in every row."""

from __future__ import annotations

import re

import msgspec

from ..facts.base import ProgramSetting
from . import rows


class WrongSetting(msgspec.Struct, frozen=True):
    """A setting, and what comes of its value.

    wrong: a pattern for the whole value, whatever its case; "missing": it names a file that is not there.
    when: what has to hold of the machine besides, by names that the check knows. value: what it should be;
    "" where it should not be set. steps: commands, where it is not mended by another value in its place.
    """

    check: str
    key: str
    name: str
    wrong: str
    when: tuple[str, ...]
    severity: str
    headline: str
    sentence: str
    remedy: str
    value: str
    steps: str = msgspec.field(name="commands")
    source: str

    @property
    def commands(self) -> list[str]:
        return [step.strip() for step in self.steps.split(";;") if step]

    def fits(self, one: ProgramSetting) -> bool:
        if one.name != self.name:
            return False
        if self.wrong == "missing":
            return one.missing
        return re.fullmatch(self.wrong, one.value.strip(), re.IGNORECASE) is not None


def wrong_settings(check: str) -> list[WrongSetting]:
    """The rows of one check; the first that fits a setting counts."""
    return [row for row in rows("settings", WrongSetting) if row.check == check]
