"""Snapshots of machines that a bench is planned on: GPUs by product, frameworks by name and version."""

from __future__ import annotations

from typing import Any

from build import document, snapshot

from envcheck.facts.gpu import Gpu, Nvml
from envcheck.facts.host import Host
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Framework

# As nvidia-smi calls them: (name, compute capability, MiB).
PRODUCTS = {
    "h100": ("NVIDIA H100 80GB HBM3", "9.0", 81559),
    "a100": ("NVIDIA A100-SXM4-40GB", "8.0", 40960),
    "v100": ("Tesla V100-SXM2-16GB", "7.0", 16160),
    "t4": ("Tesla T4", "7.5", 15360),
    "p100": ("Tesla P100-PCIE-16GB", "6.0", 16280),
    "1660": ("NVIDIA GeForce GTX 1660 Ti", "7.5", 6144),
    "3060": ("NVIDIA GeForce RTX 3060 Laptop GPU", "8.6", 6144),
}


def gpus(product: str, count: int = 1, **changes: Any) -> list[Gpu]:
    name, capability, mib = PRODUCTS[product]
    return [
        Gpu(
            **{
                "index": index,
                "name": name,
                "pci_address": f"0000:{index + 1:02x}:00.0",
                "compute_capability": capability,
                "memory_total_mib": mib,
                **changes,
            }
        )
        for index in range(count)
    ]


def framework(name: str = "torch", version: str = "2.9.0", **changes: Any) -> Framework:
    values = {"imported": True, "import_seconds": 3.0, **changes}
    return Framework(name=name, version=version, **values)


def machine(there: list[Gpu] | None = None, *frameworks: Framework) -> Snapshot:
    """A machine with these GPUs, and a target with these frameworks (PyTorch where none is named)."""
    named = {one.name: one for one in frameworks or (framework(),)}
    target = document("path:venv", **named)
    there = there or []
    return snapshot(
        target,
        nvml=Nvml(init_code=0, gpu_count=len(there), gpus=there),
        host=Host(memory_available_mib=16000, memory_total_mib=32000),
    )
