"""Checks on each GPU's PCIe link: its speed and width under load, and its replays."""

from __future__ import annotations

from ...data.products import product
from ..declared import declared_causes
from ..gpus import found, gpu_check
from ..reading import Gpu, PciDevice, Skip, SnapshotView, fact, known, need
from ..verdicts import Passed, Verdicts

CAUSE = declared_causes(__name__)

BUSY_PERCENT = 50
BUSY_STATES = ("P0", "P1", "P2")
REPLAYS_LIMIT = 1000
# GT/s of a PCIe lane by generation: PCI Express Base Specification.
GENERATION_OF = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}


@gpu_check("GPU-010")
def link_is_full(view: SnapshotView, gpu: Gpu) -> Verdicts:
    width = need(gpu.pcie_width, "the PCIe link's width")
    generation = need(gpu.pcie_gen, "the PCIe link's generation")
    virtual = in_virtual_machine(view, gpu)
    slot = None if virtual else pci_device(view, gpu)
    lanes, own = lanes_of(gpu, slot), _own_generation(gpu, slot)
    wired = known(slot.slot_max_link_width) if slot is not None else None
    fields = "pcie_width pcie_width_max pcie_gen pcie_gen_max utilization_percent performance_state"
    shown = []
    if slot is not None and wired is not None:
        text = f"{known(slot.slot) or slot.address}: slot x{wired}"
        shown = [view.evidence("machine.pci.devices", text)]
    if wired is not None and lanes is not None and width <= wired <= 2 and wired * 4 <= lanes:
        yield found(
            view, CAUSE["small-slot"], gpu, fields, evidence=shown, wired=wired, lanes=lanes
        )
        return
    full = generation >= (known(gpu.pcie_gen_max) or 99) and generation >= min(own or 0, 2)
    if width >= (lanes or 99) and full:
        yield Passed(f"generation {generation} x{width}, as the card has them")
        return
    if virtual and width == 1 and generation == 1:
        raise Skip("the PCIe link: x1 of generation 1 is a virtual machine's made-up port")
    short = lacks(view, gpu, width, generation)
    if short and not under_load(gpu):
        raise Skip("the PCIe link of an idle GPU: it is judged under load")
    if short:
        few = lanes is not None and width * 4 <= lanes
        slow = not virtual and lanes is not None and width >= min(lanes, wired or lanes)
        cause = (
            CAUSE["link-broken"]
            if few and (wired or 0) > width
            else CAUSE["link-trained-slow"]
            if slow
            else CAUSE["link-slow"]
        )
        yield found(view, cause, gpu, fields, evidence=shown, short=" and ".join(short))
    elif virtual:
        raise Skip("the PCIe link: a virtual machine does not see the slot that the GPU is in")
    elif widest_of(lanes, slot) is None or fastest_of(gpu, slot) is None:
        raise Skip("what the PCIe slot can do: not in this snapshot")
    else:
        yield Passed(f"generation {generation} x{width}, as the slot has them")


def lacks(view: SnapshotView, gpu: Gpu, width: int, generation: int) -> list[str]:
    """What a link that runs like this under load lacks of what card and slot have."""
    virtual = in_virtual_machine(view, gpu)
    slot = None if virtual else pci_device(view, gpu)
    lanes, own = lanes_of(gpu, slot), _own_generation(gpu, slot)
    widest, fastest = widest_of(lanes, slot), fastest_of(gpu, slot)
    short = []
    if widest is not None and width < widest:
        short.append(f"x{width} of x{widest}")
    elif lanes is not None and width * 4 <= lanes and widest is None:
        short.append(f"x{width} of x{lanes}")
    if not virtual and fastest is not None and generation < fastest:
        short.append(f"generation {generation} of {fastest}")
    elif generation == 1 and (own or 0) >= 3:
        short.append(f"generation 1 of {own}")
    return short


def in_virtual_machine(view: SnapshotView, gpu: Gpu) -> bool:
    """Whether the PCIe ports above the GPU are made up by a hypervisor."""
    if fact(view.machine.host, "hypervisor") is not None:
        return True
    return known(gpu.virtualization) not in (None, "None", "N/A", "Host VGPU", "Host VSGA")


def under_load(gpu: Gpu) -> bool:
    """Whether the GPU was working when it was asked: busy, or at full clocks and not idle."""
    if (known(gpu.utilization_percent) or 0) >= BUSY_PERCENT:
        return True
    reasons = known(gpu.clock_event_reasons)
    fast = known(gpu.performance_state) in BUSY_STATES
    return fast and reasons is not None and "gpu_idle" not in reasons


def pci_device(view: SnapshotView, gpu: Gpu) -> PciDevice | None:
    address = known(gpu.pci_address)
    devices: list[PciDevice] = fact(view.machine.pci, "devices") or []
    return next((device for device in devices if address and device.address == address), None)


def lanes_of(gpu: Gpu, device: PciDevice | None) -> int | None:
    lanes = [known(gpu.pcie_width_max), None if device is None else known(device.max_link_width)]
    sold = product(known(gpu.name) or "")
    return max((one for one in lanes if one), default=0) or (sold and sold.pcie_lanes) or None


def _own_generation(gpu: Gpu, device: PciDevice | None) -> int | None:
    speed = None if device is None else known(device.max_link_gts)
    numbers = [known(gpu.pcie_gen_max_device), known(gpu.pcie_gen_max)]
    numbers.append(GENERATION_OF.get(speed) if speed else None)
    return max((number for number in numbers if number), default=None)


def widest_of(lanes: int | None, slot: PciDevice | None) -> int | None:
    """Lanes that card and slot have together; None if the slot's are not known."""
    wired = None if slot is None else known(slot.slot_max_link_width)
    return min(lanes, wired) if lanes and wired else None


def fastest_of(gpu: Gpu, slot: PciDevice | None) -> int | None:
    """The generation that card and slot have together: NVML's, and no more than /sys has."""
    speed = None if slot is None else known(slot.slot_max_link_gts)
    most, of_slot = known(gpu.pcie_gen_max), GENERATION_OF.get(speed) if speed else None
    return min(most, of_slot or most) if most is not None else None


@gpu_check("GPU-018")
def link_is_clean(view: SnapshotView, gpu: Gpu) -> Verdicts:
    replays = need(gpu.pcie_replays, "the replays on the PCIe link")
    if replays >= REPLAYS_LIMIT:
        yield found(view, CAUSE["pcie-replays"], gpu, "pcie_replays", replays=replays)
    else:
        yield Passed("few replays" if replays else "no replay")
