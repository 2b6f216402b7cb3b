"""What nvidia-smi -q -x prints of a made-up machine (DTD v12, drivers 530 to 575): nvidia_smi.xml.j2."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from .gpus import Gpu
from .nvml_names import REASONS

# What the template names: NVML's numbers, and bits of the fabric's health, as nvidia-smi has them.
NAMES: dict[str, Any] = {
    "REASONS": REASONS,
    "BRANDS": {2: "Tesla", 5: "GeForce", 14: "NVIDIA", 15: "GeForce RTX"},
    "ARCHITECTURES": {
        2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere",
        8: "Ada Lovelace", 9: "Hopper", 10: "Blackwell",
    },
    "COMPUTE": ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"),
    "VIRTUALIZATION": ("None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA"),
    "RECOVERY": ("None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"),
    "COUNTERS": {
        "sw_thermal_slowdown": "sw_therm_slowdown",
        "hw_thermal_slowdown": "hw_therm_slowdown",
        "hw_power_brake_slowdown": "hw_power_brake",
    },
    "SOURCES": {
        "l2": "l2", "sm": "sm", "microcontroller": "mcu", "pcie": "pcie", "other": "other",
    },
    "SUMMARIES": (None, "Healthy", "Unhealthy", "Limited Capacity"),
    "BANDWIDTHS": ("N/A", "Degraded", "Full"),
    "MARKS": ("N/A", "True", "False"),
    "CONFIGURATIONS": (
        "N/A", "None", "Incorrect System GUID", "Incorrect Chassis Serial Number", "No Partition",
        "Insufficient Nvlinks", "Incompatible GPU Firmware", "Invalid Location", "Invalid GPU State",
    ),
}  # fmt: skip


def document(driver: str, cuda: tuple[int, int], gpus: list[Gpu]) -> str:
    return _template().render(NAMES, driver=driver, cuda=cuda, gpus=gpus)


@cache
def _template() -> jinja2.Template:
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    pages.filters |= {"of": _of, "on": _on, "watts": _watts, "part": _part, "bits": _bits}
    return pages.get_template("nvidia_smi.xml.j2")


def _of(value: Any, unit: str = "") -> str:
    return "N/A" if value is None else f"{value}{unit}"


def _on(value: Any, yes: str = "Enabled", no: str = "Disabled") -> str:
    return "N/A" if value is None else yes if value else no


def _watts(milliwatts: int | None) -> str:
    return "N/A" if milliwatts is None else f"{milliwatts / 1000:.2f} W"


def _part(values: Sequence[Any] | None, place: int) -> Any:
    """Of values that a GPU may not have at all."""
    return values[place] if values else None


def _bits(mask: int, shift: int, width: int) -> int:
    return mask >> shift & width
