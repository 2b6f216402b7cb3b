"""The bus."""

from __future__ import annotations

from world.gpus import busy
from world.machine import SWITCH, Machine, bridge, switch_acs_on

from ..model import Collection

FAULTS = Collection("PCIe")
add = FAULTS.add
LANES_8 = r"x8\b|\b8 (of|lane)|lanes?\b\D{0,9}8\b"
REMEDY = r"reseat|slot|riser|BIOS|card|cable"


def link(
    m: Machine,
    index: int,
    generation: int,
    width: int,
    *,
    top: int | None = None,
    slot: int | None = None,
) -> None:
    """top: the width that card and slot agreed upon as their most; slot: the port's."""
    gpu, device = m.gpu(index), m.of(index)
    speeds = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0"}
    gpu.change(pcie=(generation, width))
    device.files["current_link_speed"] = f"{speeds[generation]} GT/s PCIe"
    device.files["current_link_width"] = str(width)
    port = [other for other in m.devices if device.place.startswith(other.place + "/")]
    for one in port:
        one.files["current_link_speed"] = device.files["current_link_speed"]
        one.files["current_link_width"] = str(width)
        if slot is not None:
            one.files["max_link_width"] = str(slot)
    if top is not None:
        gpu.change(pcie_max=(gpu.pcie_max[0], top))


def _loaded(m: Machine, index: int, generation: int, width: int) -> None:
    for gpu in m.gpus:
        busy(gpu, pcie=gpu.pcie_max)
        m.of(gpu.index).files["current_link_speed"] = m.of(gpu.index).files["max_link_speed"]
    link(m, index, generation, width)


def _all(m: Machine, generation: int, width: int) -> None:
    for gpu in m.gpus:
        busy(gpu)
        link(m, gpu.index, generation, width)


def all_or_each(count: int) -> str:
    """Every GPU of a machine, as a message may name them."""
    return rf"all (the )?{count}|every|{count} GPUs|GPUs? 0.*GPU {count - 1}\b|0 to {count - 1}|0.{{1,3}}{count - 1}"


add(
    "GPU 3 has 8 of 16 lanes",
    "h100",
    lambda m: link(m, 3, 5, 8),
    ("PCI-00[58]|GPU-010", "GPU 3\\b", "x8\\b|\\b8 (of|lane|instead)", REMEDY),
)
add(
    "the card on a riser has 1 lane at full load",
    "rtx4090",
    lambda m: _loaded(m, 1, 4, 1),
    ("PCI-00[58]|GPU-010", r"GPU 1\b", r"x1\b|\b1 lane|1 of 16", REMEDY),
)
add(
    "GPU 5 runs at generation 3 at full load",
    "h100",
    lambda m: _loaded(m, 5, 3, 16),
    ("PCI-008|GPU-010", r"GPU 5\b", r"gen(eration)?\D{0,9}3|8(\.0)? GT", rf"{REMEDY}|ASPM"),
)
add(
    "all GPUs with 8 lanes in slots of 16",
    "a100-mig",
    lambda m: _all(m, 4, 8),
    ("PCI-00[58]|GPU-010|GPU-02[1-6]", all_or_each(4), LANES_8, REMEDY),
)
add(
    "GPU 2 sits in a slot of 8 lanes, its peers in slots of 16",
    "a100-mig",
    lambda m: link(m, 2, 4, 8, top=8, slot=8),
    ("PCI-00[58]|GPU-010|GPU-02[1-6]", r"GPU 2\b", LANES_8, REMEDY),
)


def _older_card(m: Machine) -> None:
    m.gpu(7).change(pcie=(4, 16), pcie_max=(4, 16))
    for name in ("current_link_speed", "max_link_speed"):
        m.of(7).files[name] = "16.0 GT/s PCIe"


add(
    "GPU 7 can do generation 4 where its peers can do 5",
    "h100",
    _older_card,
    (
        "PCI-00[58]|GPU-010|GPU-02[1-6]",
        r"GPU 7\b",
        r"gen(eration)?\D{0,9}4|16(\.0)? GT",
        rf"{REMEDY}|firmware|VBIOS",
    ),
)
add(
    "a hundred thousand replays on one link",
    "h100",
    lambda m: m.gpu(1).change(replays=134217),
    ("GPU-018", r"GPU 1\b", r"134.?217|replay", REMEDY),
)


def _below_one_switch(m: Machine) -> None:
    """All GPUs: root port, the switch's upper port, one of its lower ports each."""
    m.devices = [device for device in m.devices if device.files["class"] != "0x060400"]
    root = "pci0000:2e/0000:2e:01.0"
    speeds = {"current_link_speed": "16.0 GT/s PCIe", "max_link_speed": "16.0 GT/s PCIe"}
    m.devices += [bridge(root, **speeds), bridge(f"{root}/0000:2f:00.0", **SWITCH, **speeds)]
    for index, gpu in enumerate(m.gpus):
        port = f"{root}/0000:2f:00.0/0000:30:{index:02x}.0"
        m.devices.append(bridge(port, **SWITCH, **speeds))
        m.of(index).files["numa_node"] = "0"
        m.of(index).place = f"{port}/{gpu.address}"
    m.pair_level = 10


def _acs(m: Machine) -> None:
    """On root ports it changes nothing here: what passes them goes through the processor anyway."""
    _below_one_switch(m)
    switch_acs_on(m)


add(
    "ACS redirects what goes between the GPUs",
    "a100-mig",
    _acs,
    ("PCI-007", r"", r"ACS", r"setpci|iommu|BIOS|ACS"),
)


def _no_answer(m: Machine, index: int) -> None:
    m.of(index).files["config"] = b"\xff" * 64
    m.of(index).files["current_link_width"] = "63"
    handle = m.gpu(index).handle
    m.nvml_first += [f"0 nvmlDeviceGetHandleByIndex_v2 {index} 15 -", f"{handle} * * 15 -"]
    m.hidden_from_cuda = [index]
    m.smi_gpus = [gpu.index for gpu in m.gpus if gpu.index != index]
    m.smi_code = 15


lost = _no_answer
add(
    "GPU 3 does not answer on the bus any more",
    "h100",
    lambda m: _no_answer(m, 3),
    ("PCI-004|GPU-001", "GPU 3\\b|0000:5d", "answer|lost|off the bus", "reboot|power|reset"),
    also="DRV-00[67]|PCI-005",
)


def _taken_out(m: Machine, index: int) -> None:
    gpu = m.gpu(index)
    m.devices.remove(m.device(gpu.address))
    from .driver import _gone_from_driver

    _gone_from_driver(m, index)
    m.cuda_init = "0 -"


add(
    "one GPU of eight is gone from the bus",
    "h100",
    lambda m: _taken_out(m, 6),
    ("EXP-001|PCI-00\\d|GPU-02[1-6]|GPU-001", r"", r"7", r"reseat|slot|power|BIOS|vendor|--expect"),
    unseen="nothing on the machine says that there were eight; `--expect` with a profile does",
)
