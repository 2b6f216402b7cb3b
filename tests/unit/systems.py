"""Acceleration systems that no file stands for, and what their processes tell: for tests of the room."""

from __future__ import annotations

from typing import Any

from envcheck.collector.kernels.selection import Device
from envcheck.collector.systems import System

WELL = {"outcome": "ok", "facts": {"imported": True, "cuda_build": True, "gpus": [{"name": "x"}]}}


def system(name: str = "made", /, framework: str = "", **constants: Any) -> System:
    """A System whose file has these constants beside SYSTEM and DEADLINE."""
    file = {"SYSTEM": name, "DEADLINE": 5.0} | {
        key.upper(): value for key, value in constants.items()
    }
    return System(name.replace("-", "_"), framework, file)  # type: ignore[no-untyped-call]


def gpu(number: int, instance: str = "", **more: Any) -> Device:
    """One GPU, or a MIG instance of it, idle unless ``outcome`` and ``reason`` are given."""
    address = f"0000:0{number}:00.0"
    made = Device(
        {"index": number, "pci_address": address},
        f"{'MIG' if instance else 'GPU'}-{number}{instance}",
        address,
        number,
        instance,
    )
    for name, value in more.items():
        setattr(made, name, value)
    return made


def framework(**facts: Any) -> dict[str, Any]:
    """A framework's section, well unless facts say otherwise."""
    return {"outcome": "ok", "facts": {**WELL["facts"], **facts}}  # type: ignore[dict-item]


def nvml(*free: int) -> dict[str, Any]:
    """A machine's document whose GPUs have so many MiB free."""
    gpus = [
        {"pci_address": f"0000:0{number}:00.0", "memory_free_mib": mib}
        for number, mib in enumerate(free)
    ]
    return {"nvml": {"outcome": "ok", "facts": {"gpus": gpus}}}
