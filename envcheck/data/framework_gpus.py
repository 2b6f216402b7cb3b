"""What is known of a framework's builds on a range of compute capabilities: framework_gpus.csv."""

from __future__ import annotations

from functools import cache

import msgspec
from packaging.version import Version

from . import table


class GpuBuilds(msgspec.Struct, frozen=True):
    """ptx_fails: code that the driver is to compile does not run there. last_without and first_with: builds
    that were seen to lack code for it, and to have it; what is between is not known. requirement, index and
    image: what has code for it ("" where nothing is known).
    """

    framework: str
    first: Version
    last: Version
    ptx_fails: bool
    last_without: Version | None
    first_with: Version | None
    requirement: str
    index: str
    image: str
    source: str


def gpu_builds(framework: str, capability: str) -> GpuBuilds | None:
    version = Version(capability)
    found = (row for row in _rows() if row.framework == framework)
    return next((row for row in found if row.first <= version <= row.last), None)


@cache
def _rows() -> tuple[GpuBuilds, ...]:
    return tuple(
        GpuBuilds(
            framework=row["framework"],
            first=Version(row["first_capability"]),
            last=Version(row["last_capability"]),
            ptx_fails=row["ptx"] == "fails",
            last_without=Version(row["last_without"]) if row["last_without"] else None,
            first_with=Version(row["first_with"]) if row["first_with"] else None,
            requirement=row["requirement"],
            index=row["index"],
            image=row["image"],
            source=row["source"],
        )
        for row in table("framework_gpus")
    )
