"""Where a framework's XLA looks for ptxas and libdevice, and how old a ptxas it bears (xla_tools.csv)."""

from __future__ import annotations

import msgspec
from packaging.version import Version

from . import rows


class XlaSearch(msgspec.Struct, frozen=True):
    """One framework's versions from ``since`` up to ``before``.

    ptxas, libdevice: the places, in the order in which they are looked into; no ptxas: whether and where it
    is looked for is not known. oldest_ptxas: older ones compile wrongly or not at all. as_new_as_build: PTX
    is written for the CUDA that the framework was built with, so an older ptxas refuses it. always: it
    compiles without being asked to.
    """

    framework: str
    ptxas: tuple[str, ...]
    libdevice: tuple[str, ...]
    source: str
    as_new_as_build: bool = False
    always: bool = False
    since: Version | None = None
    before: Version | None = None
    oldest_ptxas: Version | None = None


def xla_search(framework: str, version: Version) -> XlaSearch | None:
    release = Version(version.base_version)
    for row in rows("xla_tools", XlaSearch):
        since = row.since is None or row.since <= release
        if row.framework == framework and since and (row.before is None or release < row.before):
            return row
    return None
