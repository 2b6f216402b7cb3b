"""PCI devices of a made-up machine: what /sys holds of them, and their configuration space."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from .contents import Content, Link

DEVICES = "/sys/bus/pci/devices"


@dataclass
class Device:
    """A PCI device: its place below /sys/devices, and its files. ``driver`` and others become links."""

    place: str
    files: dict[str, Any]

    @property
    def address(self) -> str:
        return self.place.rpartition("/")[2]


def device_files(device: Device) -> dict[str, Content]:
    folder = f"/sys/devices/{device.place}"
    found: dict[str, Content] = {
        f"{DEVICES}/{device.address}": Link(f"../../../devices/{device.place}")
    }
    for name, value in device.files.items():
        if value is None:
            continue
        if name == "driver":
            found[f"{folder}/driver"] = Link(f"/sys/bus/pci/drivers/{value}")
            found[f"/sys/bus/pci/drivers/{value}/.keep"] = ""
        elif name == "iommu_group":
            found[f"{folder}/iommu_group"] = Link(f"/sys/kernel/iommu_groups/{value}")
            found[f"/sys/kernel/iommu_groups/{value}/type"] = "DMA-FQ\n"
        else:
            found[f"{folder}/{name}"] = value if isinstance(value, bytes) else f"{value}\n"
    return found


def pci(place: str, **values: Any) -> Device:
    """A PCI device with what every one of NVIDIA's GPUs has; None leaves a file out."""
    files: dict[str, Any] = {
        "vendor": "0x10de",
        "device": "0x2330",
        "class": "0x030200",
        "power_state": "D0",
        "driver_override": "(null)",
        "current_link_speed": "32.0 GT/s PCIe",
        "current_link_width": "16",
        "max_link_speed": "32.0 GT/s PCIe",
        "max_link_width": "16",
        "numa_node": "0",
        "driver": "nvidia",
        "aer_dev_fatal": "Undefined 0\nTOTAL_ERR_FATAL 0",
        "aer_dev_nonfatal": "Undefined 0\nTOTAL_ERR_NONFATAL 0",
        "aer_dev_correctable": "RxErr 0\nTOTAL_ERR_COR 0",
        **values,
    }
    vendor, number = (int(files[name] or "0", 16) for name in ("vendor", "device"))
    files.setdefault("config", struct.pack("<HH", vendor, number) + bytes(252))
    return Device(place, files)


SWITCH = {"vendor": "0x1000", "device": "0xc030"}  # Broadcom PEX89000


def extended_space(control: int) -> bytes:
    """A configuration space with an AER capability and, behind it, ACS with this control register."""
    space = bytearray(4096)
    struct.pack_into("<I", space, 0x100, 0x0001 | 1 << 16 | 0x148 << 20)
    struct.pack_into("<IHH", space, 0x148, 0x000D | 1 << 16, 0x5F, control)
    return bytes(space)


def bridge(place: str, **values: Any) -> Device:
    """A PCIe port above devices."""
    port = {"vendor": "0x8086", "device": "0x352a", "class": "0x060400", "driver": "pcieport"}
    return pci(place, **{**port, **values})


def switch_acs_on(devices: list[Device]) -> None:
    """Every port redirects what one device sends another up to the root."""
    for device in devices:
        if device.files["class"] == "0x060400":
            device.files["config"] = device.files["config"][:256] + extended_space(0x1D)[256:]
