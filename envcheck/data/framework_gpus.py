"""What is known of a framework's builds on a range of compute capabilities: framework_gpus.csv."""

from __future__ import annotations

import msgspec
from packaging.version import Version

from . import rows


class GpuBuilds(msgspec.Struct, frozen=True):
    """ptx: "fails" where code that the driver is to compile does not run. image: what has code for it."""

    framework: str
    first_capability: Version
    last_capability: Version
    ptx: str
    image: str
    source: str


def gpu_builds(framework: str, capability: str) -> GpuBuilds | None:
    version = Version(capability)
    found = (row for row in rows("framework_gpus", GpuBuilds) if row.framework == framework)
    return next(
        (row for row in found if row.first_capability <= version <= row.last_capability), None
    )
