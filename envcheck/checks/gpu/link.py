"""Checks on each GPU's PCIe link: its speed and width under load, and its replays."""

from __future__ import annotations

from ...data.products import product
from ..driver_state import REBOOT
from ..gpus import found, gpu_check
from ..on_the_bus import link_state
from ..reading import Gpu, PciDevice, Skip, SnapshotView, fact, known, need
from ..verdicts import Passed, Verdicts, fail, warn

BUSY_PERCENT = 50
BUSY_STATES = ("P0", "P1", "P2")
REPLAYS_LIMIT = 1000
# GT/s of a PCIe lane by generation: PCI Express Base Specification.
GENERATION_OF = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}

BROKEN = fail(
    "link-broken",
    "has a slow PCIe link under load",
    "Under load the PCIe link runs at {short}: copies between host and GPU take that much longer.",
    "Reseat the GPU or its riser (one with all lanes; in a virtual machine, on its host), or take another"
    " slot; check the slot's width and generation in the firmware, and compare with the other GPUs.",
    link_state("{gpu}"),
    "nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.current,pcie.link.width.current --format=csv",
)
NARROW = BROKEN.variant("link-slow", severity="warn")
SLOW = NARROW.variant(
    "link-trained-slow",
    headline="has a PCIe link that stays slow under load",
    remedy="The lanes are all there and their speed is not: a link that was trained at a low speed, or whose"
    " target speed was set low, stays there until it is trained again. Look at the target speed (LnkCtl2) of"
    " the GPU and of the port above it, then reboot; if that does not help, power off and on, set the slot's"
    " generation in the firmware, and reseat the GPU or its riser.",
    commands=("sudo lspci -vv -s {gpu} | grep -iE 'lnk(cap|ctl|sta)'", *BROKEN.commands, REBOOT),
)
SMALL_SLOT = warn(
    "small-slot",
    "is in a slot with too few lanes",
    "The slot or riser has x{wired} of the card's x{lanes}: copies between host and GPU take that much"
    " longer, and jobs on several GPUs wait for this one, or stop with it.",
    "Put the GPU into a slot with 16 (or 8) lanes, without a riser of one lane.",
    *BROKEN.commands,
)


@gpu_check(
    "GPU-010",
    title="The PCIe link runs at full speed and width",
    causes=(BROKEN, NARROW, SLOW, SMALL_SLOT),
    about="A link with fewer lanes or a lower generation than card and slot have slows down data loading and,"
    " without NVLink, the exchange of gradients. It is judged under load, since an idle GPU lowers its link.",
    sources=["NVSentinel#890; AlexeyAB/darknet#2807; nvidia-smi(1), GPU Link information"],
    follows=("PCI-005",),
)
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
        yield found(view, SMALL_SLOT, gpu, fields, evidence=shown, wired=wired, lanes=lanes)
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
        cause = BROKEN if few and (wired or 0) > width else SLOW if slow else NARROW
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


REPLAYS = warn(
    "pcie-replays",
    "has errors on its PCIe link",
    "{replays} packets on the PCIe link had to be sent again since the last reset: its contact is bad.",
    "Reseat the GPU, its riser or cable, and check whether the count still rises under load.",
    "nvidia-smi -q -i {gpu} | grep -i replay",
    "sudo dmesg | grep -i 'pcie.*aer'",
)


@gpu_check(
    "GPU-018",
    title="The PCIe link is clean",
    causes=(REPLAYS,),
    about="A PCIe link sends a packet again if it arrived damaged. A few replays are normal; thousands"
    " indicate a bad contact, riser or cable, and cost bandwidth before the GPU falls off the bus.",
    sources=["nvidia-smi(1), Replays Since Reset"],
)
def link_is_clean(view: SnapshotView, gpu: Gpu) -> Verdicts:
    replays = need(gpu.pcie_replays, "the replays on the PCIe link")
    if replays >= REPLAYS_LIMIT:
        yield found(view, REPLAYS, gpu, "pcie_replays", replays=replays)
    else:
        yield Passed("few replays" if replays else "no replay")
