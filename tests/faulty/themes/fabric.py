"""NVLink and the NVSwitches' fabric."""

from __future__ import annotations

from world.gpus import HEALTHY_FABRIC
from world.machine import Machine

from ..changes import both, gpu
from ..model import Collection
from .kernel_log import RESET, RMA
from .pcie import all_or_each

FAULTS = Collection("NVLink and fabric")
add = FAULTS.add
LINKS = "GPU-01[39]|GPU-02[1-6]"
FABRIC = "GPU-012|GPU-02\\d|GPU-03[0-4]"
MANAGER = r"fabric.?manager"


def down(m: Machine, index: int, *links: int) -> None:
    for n in links:
        m.gpu(index).links[n]["active"] = False


def fabric(
    m: Machine,
    index: int,
    state: str = "Completed",
    status: int = 0,
    summary: int = 2,
    **parts: int,
) -> None:
    """parts: of the health mask."""
    shifts = {
        "bandwidth": (0, 3),
        "recovery": (2, 3),
        "route": (4, 3),
        "timeout": (6, 3),
        "configuration": (8, 15),
    }
    mask = HEALTHY_FABRIC
    for name, value in parts.items():
        shift, width = shifts[name]
        mask = mask & ~(width << shift) | value << shift
    m.gpu(index).change(fabric=(state, status, mask, summary if parts else 1))


add(
    "2 of 18 NVLinks of GPU 3 are down",
    lambda m: down(m, 3, 4, 5),
    ("GPU-013|GPU-02[1-6]", "GPU 3\\b", "\\b2\\b|16", f"{RESET}|{RMA}|{MANAGER}"),
)


def _all_down_in_vm(m: Machine) -> None:
    """Where the switches cannot be seen."""
    m.hypervisor, m.vendor = True, "QEMU"
    m.devices = [device for device in m.devices if device.files["class"] == "0x030200"]
    for device in m.devices:
        device.place = "pci0000:00/" + device.address
    m.services = []
    down(m, 5, *range(18))


add(
    "all NVLinks of GPU 5 are down, where no switch is seen",
    _all_down_in_vm,
    (LINKS, r"GPU 5\b", r"18|no NVLink|all", rf"{RESET}|{RMA}|{MANAGER}|host|provider"),
)


def _none_anywhere(m: Machine) -> None:
    for one in m.gpus:
        down(m, one.index, *range(18))
        one.change(fabric=("Not Started", 0, 0, 0))
    m.devices = [device for device in m.devices if device.files["class"] != "0x068000"]
    m.services = []


add(
    "no NVLink is up on any H100 SXM",
    _none_anywhere,
    (
        "GPU-01[239]|GPU-02[1-6]",
        all_or_each(8),
        r"NVLink|NVSwitch",
        rf"{RESET}|{RMA}|{MANAGER}|host",
    ),
    also="GPU-012",
)
add(
    "CRC errors on one link",
    lambda m: m.gpu(4).links[11].update(errors={"crc": 90210}),
    ("GPU-013", r"GPU 4\b", r"CRC|90.?210|link 11", rf"{RESET}|{RMA}|reseat"),
)


def no_manager(m: Machine) -> None:
    m.services = [path for path in m.services if "fabricmanager" not in path]
    for one in m.gpus:
        one.change(fabric=("In Progress", 0, 0, 0))
    m.cuda_init = "802 -"


add(
    "the fabric manager does not run",
    no_manager,
    ("KRN-011", r"", MANAGER, r"systemctl.*(start|enable).*nvidia-fabricmanager"),
)


add(
    "the fabric manager is of another version than the driver",
    both(no_manager, lambda m: m.packages.update({"nvidia-fabricmanager-570": "570.124.06-1"})),
    ("KRN-011", r"", r"570\.124\.06", r"install.*fabricmanager|570\.86\.15"),
)
CAUSES = (
    ("no partition", 3, {"configuration": 4}, r"partition", rf"{MANAGER}|partition"),
    ("an unhealthy route", 4, {"route": 1}, r"route", rf"{RESET}|{RMA}|{MANAGER}"),
    ("firmware that does not fit", 0, {"configuration": 6}, r"firmware", r"firmware"),
    (
        "a wrong place in the chassis",
        2,
        {"configuration": 7},
        r"location|place|slot",
        r"slot|location|place|chassis|tray",
    ),
)
for name, index, parts, cause, remedy in CAUSES:
    add(
        f"fabric: {name}",
        lambda m, i=index, p=parts: fabric(m, i, **p),
        (FABRIC, rf"GPU {index}\b", cause, remedy),
    )
add(
    "fabric: degraded bandwidth",
    lambda m: fabric(m, 7, summary=3, bandwidth=1),
    (FABRIC, r"GPU 7\b", r"bandwidth|capacity", rf"{RESET}|{RMA}|{MANAGER}|link"),
)
add(
    "fabric: one GPU failed to register",
    gpu(6, fabric=("Completed", 999, 0, 0)),
    (FABRIC, r"GPU 6\b", r"regist|status|Unknown Error|fabric", rf"{RESET}|{MANAGER}"),
)
