"""Facts about NVIDIA's PCI devices, from /sys alone: true without any driver."""

from __future__ import annotations

from typing import Literal

from .base import NOT_COLLECTED, Address, Facts, Maybe


class PciDevice(Facts, frozen=True, kw_only=True):
    address: Address  # "0000:01:00.0", lower case, four digits of domain where they suffice
    kind: Literal["gpu", "nvswitch", "audio", "usb", "other"]
    device_id: str  # "10de:2330"
    name: Maybe[str] = NOT_COLLECTED  # from the system's pci.ids, where there is one
    driver: Maybe[str] = (
        NOT_COLLECTED  # "nvidia", "nouveau", "nova_core", "vfio-pci"; absent: none bound
    )
    driver_override: Maybe[str] = NOT_COLLECTED  # the one driver that may have it; absent: any
    answers: Maybe[bool] = NOT_COLLECTED  # false: configuration space reads all ones (off the bus)
    power_state: Maybe[str] = NOT_COLLECTED  # "D0", "D3cold"
    link_gts: Maybe[float] = NOT_COLLECTED  # GT/s now
    link_width: Maybe[int] = NOT_COLLECTED
    max_link_gts: Maybe[float] = NOT_COLLECTED
    max_link_width: Maybe[int] = NOT_COLLECTED
    slot: Maybe[Address] = NOT_COLLECTED  # address of the port above
    bridges: Maybe[list[Address]] = NOT_COLLECTED  # above it, the root port first
    slot_max_link_gts: Maybe[float] = NOT_COLLECTED
    slot_max_link_width: Maybe[int] = NOT_COLLECTED
    numa_node: Maybe[int] = NOT_COLLECTED  # absent: the platform does not say
    iommu_group: Maybe[int] = NOT_COLLECTED
    aer_fatal: Maybe[int] = NOT_COLLECTED
    aer_nonfatal: Maybe[int] = NOT_COLLECTED


class Pci(Facts, frozen=True, kw_only=True):
    devices: Maybe[list[PciDevice]] = NOT_COLLECTED  # NVIDIA's; an empty list is a machine without
    iommu: Maybe[bool] = NOT_COLLECTED  # any IOMMU group exists
    iommu_mode: Maybe[str] = NOT_COLLECTED  # "DMA", "DMA-FQ", "identity", as the groups say
    acs_ports: Maybe[list[str]] = (
        NOT_COLLECTED  # bridges above GPUs and RDMA adapters with ACS redirection on
    )
