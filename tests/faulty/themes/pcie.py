"""The bus."""

from __future__ import annotations

from world.gpus import busy
from world.machine import Machine

from ..changes import both, gpu
from ..model import Collection
from .clocks import at_work
from .driver import gone_from_driver

FAULTS = Collection("PCIe")
add = FAULTS.add
LANES_8 = r"x8\b|\b8 (of|lane)|lanes?\b\D{0,9}8\b"
REMEDY = r"reseat|slot|riser|BIOS|card|cable"


def link(m: Machine, index: int, generation: int, width: int, most: int | None = None) -> None:
    """most: the width that card and port can have together."""
    device = m.of(index)
    speeds = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0"}
    m.gpu(index).change(pcie=(generation, width))
    device.files["current_link_speed"] = f"{speeds[generation]} GT/s PCIe"
    device.files["current_link_width"] = str(width)
    port = [other for other in m.devices if device.place.startswith(other.place + "/")]
    for one in port:
        one.files["current_link_speed"] = device.files["current_link_speed"]
        one.files["current_link_width"] = str(width)
        if most is not None:
            one.files["max_link_width"] = str(most)
    if most is not None:
        m.gpu(index).change(pcie_max=(m.gpu(index).pcie_max[0], most))


def _all(m: Machine, generation: int, width: int) -> None:
    for one in m.gpus:
        busy(one)
        link(m, one.index, generation, width)


def all_or_each(count: int) -> str:
    """Every GPU of a machine, as a message may name them."""
    return rf"all (the )?{count}|every|{count} GPUs|GPUs? 0.*GPU {count - 1}\b|0 to {count - 1}|0.{{1,3}}{count - 1}"


add(
    "GPU 3 has 8 of 16 lanes",
    lambda m: link(m, 3, 5, 8),
    ("PCI-00[58]|GPU-010", "GPU 3\\b", "x8\\b|\\b8 (of|lane|instead)", REMEDY),
)
add(
    "the card on a riser has 1 lane at full load",
    both(at_work, lambda m: link(m, 1, 4, 1)),
    ("PCI-00[58]|GPU-010", r"GPU 1\b", r"x1\b|\b1 lane|1 of 16", REMEDY),
    base="rtx4090",
)
add(
    "GPU 5 runs at generation 3 at full load",
    both(at_work, lambda m: link(m, 5, 3, 16)),
    ("PCI-008|GPU-010", r"GPU 5\b", r"gen(eration)?\D{0,9}3|8(\.0)? GT", rf"{REMEDY}|ASPM"),
)
add(
    "all GPUs with 8 lanes in slots of 16",
    lambda m: _all(m, 4, 8),
    ("PCI-00[58]|GPU-010|GPU-02[1-6]", all_or_each(4), LANES_8, REMEDY),
    base="a100-mig",
)
add(
    "GPU 2 sits in a slot of 8 lanes, its peers in slots of 16",
    lambda m: link(m, 2, 4, 8, most=8),
    ("PCI-00[58]|GPU-010|GPU-02[1-6]", r"GPU 2\b", LANES_8, REMEDY),
    base="a100-mig",
)
add(
    "a hundred thousand replays on one link",
    gpu(1, replays=134217),
    ("GPU-018", r"GPU 1\b", r"134.?217|replay", REMEDY),
)


def lost(m: Machine, index: int) -> None:
    m.of(index).files["config"] = b"\xff" * 64
    m.of(index).files["current_link_width"] = "63"
    handle = m.gpu(index).handle
    m.nvml_first += [f"0 nvmlDeviceGetHandleByIndex_v2 {index} 15 -", f"{handle} * * 15 -"]
    m.hidden_from_cuda = [index]
    m.smi_gpus = [one.index for one in m.gpus if one.index != index]
    m.smi_code = 15


add(
    "GPU 3 does not answer on the bus any more",
    lambda m: lost(m, 3),
    ("PCI-004|GPU-001", "GPU 3\\b|0000:5d", "answer|lost|off the bus", "reboot|power|reset"),
    also="DRV-00[67]|PCI-005",
)


add(
    "one GPU of eight is gone from the bus",
    both(lambda m: m.devices.remove(m.of(6)), lambda m: gone_from_driver(m, 6)),
    ("EXP-001|PCI-00\\d|GPU-02[1-6]|GPU-001", r"", r"7", r"reseat|slot|power|BIOS|vendor|--expect"),
    unseen="nothing on the machine says that there were eight; `--expect` with a profile does",
)
