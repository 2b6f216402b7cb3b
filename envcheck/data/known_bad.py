"""Versions that are known to hang, to be slow or to corrupt data, under which circumstances."""

from __future__ import annotations

import re

import msgspec
from packaging.version import Version

from . import rows


class KnownBad(msgspec.Struct, frozen=True):
    """What is known of some versions of a component: "driver" or "nccl".

    gpus, capability, least: of which GPUs, and how many at least. when: "p2p" (direct access), "nccl" (the
    same, and NCCL is in the target), or nothing.
    """

    what: str
    versions: str  # ">=2.25.1,<2.26.2"
    gpus: str
    capability: str
    least: int
    when: str
    symptom: str
    fixed: str
    workaround: str
    source: str

    def covers(self, version: Version) -> bool:
        from packaging.specifiers import SpecifierSet  # here: it takes 20 ms

        return SpecifierSet(self.versions).contains(Version(version.public), prereleases=True)

    def is_about(self, gpu: str) -> bool:
        return re.search(self.gpus, gpu, re.IGNORECASE) is not None


def known_bad() -> tuple[KnownBad, ...]:
    return rows("known_bad", KnownBad)
