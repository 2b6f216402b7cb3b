"""Where a framework's XLA looks for ptxas and libdevice, and how old a ptxas it bears (xla_tools.csv)."""

from __future__ import annotations

from functools import cache

import msgspec
from packaging.version import Version

from . import table


class XlaSearch(msgspec.Struct, frozen=True):
    """One framework's versions from ``since`` up to ``before``.

    ptxas, libdevice: the places, in the order in which they are looked into; no ptxas: whether and where it
    is looked for is not known. oldest_ptxas: older ones compile wrongly or not at all. as_new_as_build: PTX
    is written for the CUDA that the framework was built with, so an older ptxas refuses it. always: it
    compiles without being asked to.
    """

    framework: str
    since: Version
    before: Version | None
    ptxas: tuple[str, ...]
    libdevice: tuple[str, ...]
    oldest_ptxas: Version | None
    as_new_as_build: bool
    always: bool
    source: str


def xla_search(framework: str, version: Version) -> XlaSearch | None:
    release = Version(version.base_version)
    for row in _rows():
        until = row.before is None or release < row.before
        if row.framework == framework and row.since <= release and until:
            return row
    return None


@cache
def _rows() -> tuple[XlaSearch, ...]:
    return tuple(
        XlaSearch(
            framework=row["framework"],
            since=Version(row["since"] or "0"),
            before=Version(row["before"]) if row["before"] else None,
            ptxas=tuple(filter(None, row["ptxas"].split(","))),
            libdevice=tuple(row["libdevice"].split(",")),
            oldest_ptxas=Version(row["oldest_ptxas"]) if row["oldest_ptxas"] else None,
            as_new_as_build=row["as_new_as_build"] == "yes",
            always=row["always"] == "yes",
            source=row["source"],
        )
        for row in table("xla_tools")
    )
