"""Fake machines below a directory, as the PCI and kernel probes see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from envcheck.collector.facts import Facts, dumps
from envcheck.collector.runtime.context import Context
from envcheck.facts.base import Unavailable

from .contents import Link
from .pci import device_files, pci

RELEASE = "6.8.0-45-generic"


class Tree:
    """A fake machine: write files and links by their paths on that machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def write(self, path: str, content: str | bytes = "") -> Path:
        file = self.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def link(self, path: str, target: str) -> None:
        """A link at ``path``; the target as it is stored, relative ones included."""
        file = self.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)

    def context(self) -> Context:
        return Context({"PATH": "/nowhere"}, root=str(self.root))

    def device(self, place: str, **files: str | bytes | None) -> str:
        """A PCI device at its place below /sys/devices, "pci0000:00/0000:00:01.0/0000:01:00.0".

        ``driver`` and ``iommu_group`` become links; None leaves a file out. Returns its address.
        """
        made = pci(place, **{"numa_node": "1", **files})
        for path, content in device_files(made).items():
            if isinstance(content, Link):
                if not self.path(path).is_symlink():
                    self.link(path, content.to)
            elif isinstance(content, str | bytes):
                self.write(path, content)
        return made.address

    def bridge(self, place: str, **files: str | bytes | None) -> str:
        values = {"vendor": "0x8086", "class": "0x060400", "driver": "pcieport", "device": "0x1234"}
        return self.device(place, **{**values, **files})


def decode(facts: Facts, kind: Any) -> Any:
    """A probe's facts, through JSON into the Snapshot's types, which refuse what they do not know."""
    return msgspec.json.decode(dumps(facts.values).encode(), type=kind)


def reason(fact: Any) -> str:
    assert isinstance(fact, Unavailable), fact
    return fact.unavailable
