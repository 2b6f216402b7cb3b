"""What other products have than the H100 that a made-up GPU is by itself."""

from __future__ import annotations

from typing import Any

_SMALL: dict[str, Any] = {"repair": None, "unrepairable": None, "links": [], "fabric": None}
RTX_4090 = {
    **_SMALL,
    "name": "NVIDIA GeForce RTX 4090", "brand": 15, "board_part": None, "serial": None,
    "architecture": 8, "capability": (8, 9), "cores": 16384, "device_id": 0x2684,
    "vbios": "95.02.3C.00.8A", "inforom": "G002.0000.00.03", "persistence": False,
    "bar1_mib": 32768, "memory_mib": 24564, "reserved_mib": 445, "bus_width": 384,
    "mig": None, "ecc": (False, False), "remap": None,
    "slowdown_c": 90, "shutdown_c": 95, "margin": 53, "memory_temperature": None,
    "memory_max_c": None, "fan": 0,
    "power_mw": 18000, "limit_mw": 450000, "power_range": (150000, 600000), "pstate": 8,
    "clock_sm": 210, "clock_memory": 405, "max_sm": 3105, "max_memory": 10501,
    "app_sm": None, "app_memory": None,
    "pcie": (1, 16), "pcie_max": (4, 16), "pcie_max_host": 5,
}  # fmt: skip
T4 = {
    **_SMALL,
    "name": "Tesla T4", "board_part": "900-2G183-0000-001", "architecture": 6,
    "capability": (7, 5), "cores": 2560, "device_id": 0x1EB8,
    "vbios": "90.04.A7.00.01", "inforom": "G183.0200.00.02", "virtualization": 1,
    "bar1_mib": 256, "memory_mib": 15360, "reserved_mib": 454, "bus_width": 256,
    "mig": None, "remap": None, "retired": (0, 0, False),
    "slowdown_c": 93, "shutdown_c": 96, "margin": None, "memory_temperature": None,
    "memory_max_c": None,
    "power_mw": 9500, "limit_mw": 70000, "power_range": (60000, 70000), "pstate": 8,
    "clock_sm": 300, "clock_memory": 405, "max_sm": 1590, "max_memory": 5001,
    "app_sm": 585, "app_memory": 5001,
    "pcie": (1, 16), "pcie_max": (3, 16),
}  # fmt: skip
A100 = {
    **_SMALL,
    "name": "NVIDIA A100 80GB PCIe", "board_part": "900-21001-0020-000", "architecture": 7,
    "capability": (8, 0), "cores": 6912, "device_id": 0x20B5,
    "vbios": "92.00.68.00.01", "inforom": "1001.0230.00.03",
    "memory_mib": 81920, "reserved_mib": 869,
    "slowdown_c": 89, "shutdown_c": 92, "margin": None, "memory_max_c": 95,
    "power_mw": 45000, "limit_mw": 300000, "power_range": (150000, 300000),
    "clock_sm": 210, "clock_memory": 1512, "max_sm": 1410, "max_memory": 1512,
    "app_sm": 1410, "app_memory": 1512,
    "pcie": (4, 16), "pcie_max": (4, 16),
}  # fmt: skip
