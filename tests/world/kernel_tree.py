"""Fake machines below a directory, as the PCI and kernel probes see them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import msgspec

from envcheck.collector.facts import Facts, dumps
from envcheck.collector.runtime.context import Context

RELEASE = "6.8.0-45-generic"
H100 = "0x2330"
DEVICES = "/sys/bus/pci/devices"


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
        address = place.rpartition("/")[2]
        folder = f"/sys/devices/{place}"
        values: dict[str, str | bytes | None] = {
            "vendor": "0x10de",
            "device": H100,
            "class": "0x030200",
            "config": bytes.fromhex("de103023") + bytes(60),
            "power_state": "D0",
            "driver_override": "(null)",
            "current_link_speed": "32.0 GT/s PCIe",
            "current_link_width": "16",
            "max_link_speed": "32.0 GT/s PCIe",
            "max_link_width": "16",
            "numa_node": "1",
            "driver": "nvidia",
            **files,
        }
        for name, value in values.items():
            if value is None:
                continue
            if name == "driver":
                self.link(f"{folder}/driver", f"../../../../bus/pci/drivers/{value!s}")
            elif name == "iommu_group":
                self.link(f"{folder}/iommu_group", f"../../../../kernel/iommu_groups/{value!s}")
                self.write(f"/sys/kernel/iommu_groups/{value!s}/type", "DMA-FQ\n")
            else:
                self.write(f"{folder}/{name}", value if isinstance(value, bytes) else value + "\n")
        self.link(f"{DEVICES}/{address}", f"../../../devices/{place}")
        return address

    def bridge(self, place: str, **files: str | bytes | None) -> str:
        values = {"vendor": "0x8086", "class": "0x060400", "driver": "pcieport", "device": "0x1234"}
        return self.device(place, **{**values, **files})


def decode(facts: Facts, kind: Any) -> Any:
    """A probe's facts, through JSON into the Snapshot's types, which refuse what they do not know."""
    return msgspec.json.decode(dumps(facts.values).encode(), type=kind)


def extended_space(control: int, size: int = 4096) -> bytes:
    """A configuration space with an AER capability and, behind it, ACS with this control register."""
    space = bytearray(size)
    struct.pack_into("<I", space, 0x100, 0x0001 | 1 << 16 | 0x148 << 20)
    struct.pack_into("<IHH", space, 0x148, 0x000D | 1 << 16, 0x5F, control)
    return bytes(space)


def kernel_module(modinfo: bytes, wide: bool = True, order: str = "<") -> bytes:
    """An ELF file with one .modinfo section (and the table of names that every one has)."""
    names = b"\0.modinfo\0.shstrtab\0"
    head, entry = (64, 64) if wide else (52, 40)
    start = head
    table = start + len(modinfo) + len(names)
    ident = b"\x7fELF" + bytes((2 if wide else 1, 1 if order == "<" else 2, 1)) + bytes(9)
    if wide:
        header = struct.pack(
            order + "HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, head, 0, 0, entry, 3, 2
        )
    else:
        header = struct.pack(
            order + "HHIIIIIHHHHHH", 1, 3, 1, 0, 0, table, 0, head, 0, 0, entry, 3, 2
        )

    def section(name: int, kind: int, offset: int, length: int) -> bytes:
        if wide:
            return struct.pack(order + "IIQQQQIIQQ", name, kind, 0, 0, offset, length, 0, 0, 1, 0)
        return struct.pack(order + "IIIIIIIIII", name, kind, 0, 0, offset, length, 0, 0, 1, 0)

    sections = (
        section(0, 0, 0, 0)
        + section(1, 1, start, len(modinfo))
        + section(10, 3, start + len(modinfo), len(names))
    )
    return ident + header + modinfo + names + sections


def modinfo(version: str = "550.54.15", licence: str = "NVIDIA") -> bytes:
    fields = (
        f"version={version}",
        "supported=external",
        f"license={licence}",
        "vermagic=6.8.0 SMP",
    )
    return b"\0".join(field.encode() for field in fields) + b"\0"
