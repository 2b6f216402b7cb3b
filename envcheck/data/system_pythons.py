"""The Python that a supported release of Debian or Ubuntu comes with."""

from __future__ import annotations

from typing import NamedTuple

from . import table


class SystemPython(NamedTuple):
    system: str  # "Debian 12"
    id: str  # os-release's ID and VERSION_ID: "debian", "12"
    version: str
    python: str  # "3.11"
    glibc: str  # "2.36"


def system_pythons() -> list[SystemPython]:
    """All of them, oldest release of each distribution first."""
    return [
        SystemPython(*(row[name] for name in SystemPython._fields))
        for row in table("system_pythons")
    ]
