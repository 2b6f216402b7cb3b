"""Environment variables that keep a GPU from work, or make it slow: misleading_variables.csv."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from . import rows


class MisleadingVariable(msgspec.Struct, frozen=True):
    """value: those that mislead, as a pattern of the whole text.

    when: what else has to hold. "sm80" of a visible GPU; "unwritable", "absent" or "misspelt" of directories
    that it names; "other-cuda" of PyTorch's CUDA; "unread" of a TensorFlow that does not read the variable.
    All others are requirements, of which one is installed.
    """

    check: str
    key: str
    variable: tuple[str, ...]
    value: re.Pattern[str]
    when: tuple[str, ...]
    severity: Literal["fail", "warn"]
    headline: str
    sentence: str
    remedy: str
    source: str


def misleading_variables() -> tuple[MisleadingVariable, ...]:
    return rows("misleading_variables", MisleadingVariable)
