"""Commands that show devices on the PCI bus by /sys alone: not every machine has lspci."""

from __future__ import annotations

# The devices that are NVIDIA's (10de), and the bridges (NVSwitches) among all.
NVIDIA_DEVICES = "grep -l 0x10de /sys/bus/pci/devices/*/vendor"
BAR_SIZES = "grep . /sys/bus/pci/devices/*/resource1_resize"
BRIDGES = "grep -l 0x0680 /sys/bus/pci/devices/*/class"


def link_state(address: str) -> str:
    return f"grep . /sys/bus/pci/devices/{address}/*_link_*"


def error_counts(address: str) -> str:
    return f"grep . /sys/bus/pci/devices/{address}/aer_*"
