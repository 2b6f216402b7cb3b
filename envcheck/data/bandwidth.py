"""How fast memory and links are: published figures, others' pass lines, and what a link can carry."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from . import rows, table
from .gpu_names import model

# GB/s of one PCIe lane by generation, after encoding (8b/10b, 128b/130b, flits of 242 in 256 bytes):
# PCI Express Base Specification.
PCIE_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
# GB/s of one NVLink each way by generation: NVIDIA's pages on NVLink.
NVLINK = {1: 20.0, 2: 25.0, 3: 25.0, 4: 25.0, 5: 50.0}


class PassLine(msgspec.Struct, frozen=True):
    """GB/s below which somebody calls the memory of a GPU slow, and who."""

    gpu: str  # as DCGM calls it
    device_id: str  # "10de:2330"
    gb_s: float
    source: str


@lru_cache(maxsize=64)
def published_memory(name: str) -> float | None:
    """GB/s of its memory as published, by ``gpus.csv``; the least where several have this name."""
    rows = [row for row in table("gpus") if row["mem_bw_gb_s"] and model(row["gpu"]) == model(name)]
    form = [row for row in rows if _form(row["gpu"]) == _form(name)]
    size = [row for row in form if _gigabytes(row["gpu"]) & _gigabytes(name)]
    return min((float(row["mem_bw_gb_s"]) for row in size or form or rows), default=None)


def _form(name: str) -> str:
    """A module's name mostly does not say that it is one: "NVIDIA H100 80GB HBM3"."""
    return next((form for form in ("pcie", "nvl") if form in name.lower()), "")


def _gigabytes(name: str) -> set[str]:
    """The sizes in a name: "16/32GB", "80GB"."""
    found = re.search(r"\b(\d{1,3}(?:/\d{1,3})?) ?GB", name)
    return set(found[1].split("/")) if found else set()


def memory_line(device_id: str) -> PassLine | None:
    """The pass line of a GPU's memory by its PCI ids ("10de:2330"), the lowest where there are several."""
    every = rows("bandwidth_reference", PassLine)
    found = (row for row in every if row.device_id == device_id.lower())
    return min(found, key=lambda row: row.gb_s, default=None)
