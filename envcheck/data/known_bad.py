"""Versions that are known to hang, to be slow or to corrupt data, under which circumstances."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from . import table


class KnownBad(NamedTuple):
    """What is known of some versions of a component: "driver", "nccl", "torch".

    gpus, capability, least: of which GPUs, and how many at least. when: "p2p", "rdma", "aarch64", "amd",
    "env:NAME=VALUE", or nothing. level: "warn", or "detail" for what few meet.
    """

    what: str
    versions: SpecifierSet
    gpus: re.Pattern[str]
    capability: str
    least: int
    when: str
    level: str
    symptom: str
    fixed: str
    workaround: str
    source: str

    def covers(self, version: Version) -> bool:
        return self.versions.contains(Version(version.public), prereleases=True)


@cache
def known_bad() -> tuple[KnownBad, ...]:
    return tuple(
        KnownBad(
            row["what"],
            SpecifierSet(row["versions"]),
            re.compile(row["gpus"], re.IGNORECASE),
            row["capability"],
            int(row["least"]),
            row["when"],
            row["level"],
            row["symptom"],
            row["fixed"],
            row["workaround"],
            row["source"],
        )
        for row in table("known_bad")
    )
