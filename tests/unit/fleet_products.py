"""The products of the simulated fleet, and one GPU of each as a driver tells of it.

Each tells what documents of real machines and NVIDIA's descriptions say: no NVLink on a card, no ECC on
a GeForce, no fabric and no recovery action before the drivers that have them.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, NamedTuple

import h100
from h100 import NOT_SUPPORTED

from envcheck.facts.gpu import Gpu, NvLink


class Product(NamedTuple):
    """A row of fleet.csv: what the driver says of a GPU."""

    name: str
    capability: str
    architecture: str
    memory: int  # MiB
    device_id: str
    power: float  # W
    clock: int  # MHz
    since: int  # driver branch
    until: int
    generation: int  # PCIe
    lanes: int
    ecc: bool
    links: int  # NVLinks in use on a board of several
    switch: bool  # NVSwitches on the PCI bus
    mig: bool
    vgpu: str  # its name as a vGPU, or ""

    @property
    def module(self) -> bool:
        return self.links > 0

    @property
    def consumer(self) -> bool:
        return "GeForce" in self.name or "TITAN" in self.name


def _read(row: dict[str, str]) -> Product:
    numbers = ("memory", "clock", "since", "generation", "lanes", "links")
    marks = ("ecc", "switch", "mig")
    return Product(
        **(
            row
            | {name: int(row[name]) for name in numbers}
            | {name: row[name] == "yes" for name in marks}
            | {"until": int(row["until"] or 999), "power": float(row["power"])}
        )  # type: ignore[arg-type]
    )


PRODUCTS = [_read(row) for row in csv.DictReader((Path(__file__).parent / "fleet.csv").open())]

# {branch: (version, newest CUDA)}; those above 590 as documents of real machines have them
BRANCHES = {
    450: ("450.248.02", "11.0"),
    460: ("460.106.00", "11.2"),
    470: ("470.256.02", "11.4"),
    515: ("515.105.01", "11.7"),
    525: ("525.147.05", "12.0"),
    535: ("535.183.06", "12.2"),
    550: ("550.144.03", "12.4"),
    560: ("560.35.05", "12.6"),
    570: ("570.172.08", "12.8"),
    580: ("580.95.05", "13.0"),
    590: ("590.48.01", "13.1"),
    610: ("610.57.04", "13.3"),
}
USUAL = 580


def gpu(product: Product, index: int, branch: int, **changes: Any) -> Gpu:
    """One GPU of the product, idle, as a driver of that branch tells of it."""
    hbm = product.capability in ("8.0", "9.0", "10.0")
    facts: dict[str, Any] = dict.fromkeys(EVERYTHING, NOT_SUPPORTED)
    facts |= {
        "index": index,
        "pci_address": h100.ADDRESSES[index],
        "uuid": f"GPU-<uuid-{index + 1}>",
        "name": product.name,
        "brand": "GeForce" if product.consumer else "NVIDIA",
        "architecture": product.architecture,
        "compute_capability": product.capability,
        "minor_number": index,
        "vbios": "96.00.74.00.1A",
        "inforom": NOT_SUPPORTED if product.consumer else "G520.0200.00.05",
        "inforom_valid": NOT_SUPPORTED if product.consumer else True,
        "gsp_enabled": True if branch >= 525 else NOT_SUPPORTED,
        "virtualization": "None",
        "persistence": not product.consumer,
        "compute_mode": "Default",
        "performance_state": "P0" if hbm else "P8",
        "memory_total_mib": product.memory,
        "memory_used_mib": 4,
        "memory_free_mib": product.memory - 600,
        "bar1_total_mib": 256 if product.consumer else 131072,
        "bar1_used_mib": 2,
        "temperature_c": 34,
        "temperature_slowdown_c": 87,
        "temperature_shutdown_c": 92,
        "power_draw_w": product.power * 0.14,
        "power_limit_w": product.power,
        "power_default_limit_w": product.power,
        "power_min_limit_w": product.power * 0.4,
        "power_max_limit_w": product.power,
        "clock_sm_mhz": 345 if hbm else 210,
        "clock_memory_mhz": 1593 if hbm else 405,
        "clock_sm_max_mhz": product.clock,
        "clock_memory_max_mhz": 2619,
        "clock_event_reasons": ["gpu_idle"],
        "utilization_percent": 0,
        "pcie_gen": product.generation if product.module else 1,
        "pcie_gen_max": product.generation,
        "pcie_gen_max_device": product.generation,
        "pcie_width": product.lanes,
        "pcie_width_max": product.lanes,
        "pcie_replays": 0,
        "processes": [],
    }
    if product.ecc:
        counts = [name for name in EVERYTHING if name.startswith(("ecc_corr", "ecc_uncorr"))]
        facts |= dict.fromkeys(counts, 0) | {"ecc_enabled": True, "ecc_pending": True}
    if product.ecc and float(product.capability) >= 8:
        facts |= {"remap_correctable": 0, "remap_uncorrectable": 0}
        facts |= {"remap_pending": False, "remap_failed": False}
        facts |= {"remap_banks_low": 0, "remap_banks_none": 0}
    elif product.ecc:
        facts |= {"retired_single_bit": 0, "retired_double_bit": 0, "retired_pending": False}
    if product.mig and branch >= 450:
        facts |= {"mig_enabled": False, "mig_pending": False, "mig_instances": []}
    if product.module:
        facts["nvlinks"] = [
            NvLink(link=n, active=True, crc_errors=0, replay_errors=0, recovery_errors=0)
            for n in range(product.links)
        ]
    if branch >= 535 and product.ecc:
        facts["sram_threshold_exceeded"] = False
    if branch >= 535 and (product.switch or product.name.endswith("B200")):
        facts |= {"fabric_state": "Completed", "fabric_status": "Success"}
        facts |= {"fabric_clique": 0, "fabric_cluster": "00000000-0000-0000-0000-000000000000"}
    if branch >= 570 and product.ecc:
        facts |= {"recovery_action": "None", "channel_repair_pending": False}
        facts |= {"tpc_repair_pending": False, "unrepairable_memory": False}
    if branch >= 560:
        facts |= {name: 0 for name in EVERYTHING if name.startswith("slowdown_")}
    return Gpu(**(facts | changes))


_SAID_OTHERWISE = {"driver_model", "vgpu_licence", "addressing_mode"}
EVERYTHING = [name for name in Gpu.__struct_fields__ if name not in _SAID_OTHERWISE]
