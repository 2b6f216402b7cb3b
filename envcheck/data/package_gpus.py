"""Which GPUs packages compute on: package_gpus.csv."""

from __future__ import annotations

import re

import msgspec
from packaging.version import Version

from . import rows


class PackageGpus(msgspec.Struct, frozen=True):
    """packages: a pattern of normalised names. least: the compute capability that they need.

    note: worth knowing, and no fault. says: what happens on others, and what helps. instead: versions that
    compute there.
    """

    packages: re.Pattern[str]
    versions: str
    least: Version
    note: bool
    says: str
    instead: str
    source: str


def package_gpus() -> tuple[PackageGpus, ...]:
    return rows("package_gpus", PackageGpus)
