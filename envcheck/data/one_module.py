"""Packages that install the same module, of which an environment can have one: one_module.csv."""

from __future__ import annotations

import re

import msgspec
from packaging.requirements import Requirement

from . import rows


class OneModule(msgspec.Struct, frozen=True):
    """packages and keep: patterns of normalised names. keep: the one to keep of several.
    shell: one that is empty, and requires another.

    for_cpus: of those a package that computes on the CPU alone; for_gpus: what to install in its place.
    """

    module: str
    packages: re.Pattern[str]
    keep: re.Pattern[str] = re.compile("")
    shell: Requirement | None = None
    for_cpus: str = ""
    for_gpus: str = ""
    source: str = ""


def one_module() -> tuple[OneModule, ...]:
    return rows("one_module", OneModule)
