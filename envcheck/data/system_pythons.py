"""The Python that a supported release of Debian or Ubuntu comes with."""

from __future__ import annotations

import msgspec

from . import rows


class SystemPython(msgspec.Struct, frozen=True):
    system: str  # "Debian 12"
    id: str  # os-release's ID and VERSION_ID: "debian", "12"
    version: str
    python: str  # "3.11"
    glibc: str  # "2.36"


def system_pythons() -> tuple[SystemPython, ...]:
    """All of them, oldest release of each distribution first."""
    return rows("system_pythons", SystemPython)
