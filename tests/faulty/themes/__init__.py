"""The faults, a file a theme; every file has a Collection named FAULTS."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ..model import Fault


@cache
def all_faults() -> tuple[Fault, ...]:
    found: list[Fault] = []
    for _finder, name, _package in sorted(
        pkgutil.iter_modules(__path__), key=lambda module: module[1]
    ):
        found += importlib.import_module(f"{__name__}.{name}").FAULTS.faults
    names = [fault.name for fault in found]
    assert len(names) == len(set(names)), "two faults have one name"
    return tuple(found)
