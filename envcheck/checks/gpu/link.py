"""Checks on each GPU's PCIe link: its speed and width under load, and its replays."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.products import product
from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.missing import Skip
from ...facts.pci import PciDevice
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..driver_state import NO_GPUS
from ..gpus import address_of, finding, judge_gpus
from ..on_the_bus import link_state
from ..registry import check

BUSY_PERCENT = 50
BUSY_STATES = ("P0", "P1", "P2")
REPLAYS_LIMIT = 1000

# GT/s of a PCIe lane by generation: PCI Express Base Specification.
GENERATION_OF = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}


@check(
    "GPU-010",
    title="The PCIe link runs at full speed and width",
    problem="has a slow PCIe link",
    about="A link with fewer lanes or a lower generation than card and slot have slows down data loading"
    " and, without NVLink, the exchange of gradients. An idle GPU lowers its link by itself and many slots"
    " have 8 lanes, so the link is judged under load (utilisation of 50 % or more, or a full performance"
    " state that is not idle), and against the slot where that is known. A quarter of the card's own lanes"
    " or less, or generation 1, is told in virtual machines too, where the slot is not seen; and a slot or"
    " riser that has one or two lanes of a card's sixteen, without load. With a quarter of the lanes or less"
    " in a slot that has more, the link is broken: a failure. Everything else is a warning.",
    sources=(
        "NVSentinel#890 (silently slow)",
        "AlexeyAB/darknet#2807 (training stops with a GPU on a riser of one lane)",
        "nvidia-smi(1), GPU Link information",
    ),
    follows=(*NO_GPUS, "PCI-005"),
)
def link_is_full(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _link(view, gpu))


def _link(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    width, generation = known(gpu.pcie_width), known(gpu.pcie_gen)
    if width is None or generation is None:
        need(gpu.pcie_width, "the PCIe link's width")
        need(gpu.pcie_gen, "the PCIe link's generation")
        return
    virtual = in_virtual_machine(view, gpu)
    slot = None if virtual else pci_device(view, gpu)
    lanes, own = lanes_of(gpu, slot), _own_generation(gpu, slot)
    wired = known(slot.slot_max_link_width) if slot is not None else None
    if wired is not None and lanes is not None and width <= wired <= 2 and wired * 4 <= lanes:
        yield _in_a_small_slot(view, gpu, slot, f"x{wired}", lanes)
        return
    full = generation >= (known(gpu.pcie_gen_max) or 99) and generation >= min(own or 0, 2)
    if width >= (lanes or 99) and full:
        yield Passed(f"generation {generation} x{width}, as the card has them")
        return
    widest, fastest = widest_of(lanes, slot), fastest_of(gpu, slot)
    short: list[str] = []
    few = lanes is not None and width * 4 <= lanes
    if widest is not None and width < widest:
        short.append(f"x{width} of x{widest}")
    elif wired is None and few:
        short.append(f"x{width} of x{lanes}")
    if not virtual and fastest is not None and generation < fastest:
        short.append(f"generation {generation} of {fastest}")
    elif generation == 1 and (own or 0) >= 3:
        short.append(f"generation 1 of {own}")
    if virtual and width == 1 and generation == 1:
        raise Skip(
            "the PCIe link: x1 of generation 1 is what a virtual machine's made-up port shows"
        )
    if short and not under_load(gpu):
        raise Skip("the PCIe link of an idle GPU: it is judged under load")
    if short:
        broken = few and (wired or 0) > width
        yield _narrow(view, gpu, slot, " and ".join(short), broken)
    elif virtual:
        raise Skip("the PCIe link: a virtual machine does not see the slot that the GPU is in")
    elif widest is None or fastest is None:
        raise Skip("what the PCIe slot can do: not in this snapshot")
    else:
        yield Passed(f"generation {generation} x{width}, as the slot has them")


def in_virtual_machine(view: SnapshotView, gpu: Gpu) -> bool:
    """Whether the PCIe ports above the GPU are made up by a hypervisor."""
    host = view.machine.host
    virtual = (
        host is not None and host.facts is not None and known(host.facts.hypervisor) is not None
    )
    return virtual or known(gpu.virtualization) not in (
        None,
        "None",
        "N/A",
        "Host VGPU",
        "Host VSGA",
    )


def under_load(gpu: Gpu) -> bool:
    """Whether the GPU was working when it was asked: busy, or at full clocks and not idle."""
    busy = known(gpu.utilization_percent)
    if busy is not None and busy >= BUSY_PERCENT:
        return True
    reasons = known(gpu.clock_event_reasons)
    state = known(gpu.performance_state)
    return state in BUSY_STATES and reasons is not None and "gpu_idle" not in reasons


def pci_device(view: SnapshotView, gpu: Gpu) -> PciDevice | None:
    """The GPU as /sys has it, by its PCI address."""
    pci = view.machine.pci
    devices = None if pci is None or pci.facts is None else known(pci.facts.devices)
    address = known(gpu.pci_address)
    return next((device for device in devices or [] if address and device.address == address), None)


def lanes_of(gpu: Gpu, device: PciDevice | None) -> int | None:
    """The lanes that the card itself has."""
    told = [known(gpu.pcie_width_max), None if device is None else known(device.max_link_width)]
    sold = product(known(gpu.name) or "")
    return max((lanes for lanes in told if lanes), default=0) or (sold and sold.pcie_lanes) or None


def _own_generation(gpu: Gpu, device: PciDevice | None) -> int | None:
    """The generation that the card itself has."""
    speed = None if device is None else known(device.max_link_gts)
    told = [known(gpu.pcie_gen_max_device), known(gpu.pcie_gen_max)]
    told.append(GENERATION_OF.get(speed) if speed else None)
    return max((number for number in told if number), default=None)


def widest_of(lanes: int | None, slot: PciDevice | None) -> int | None:
    """Lanes that card and slot have together; None where the slot's are not known."""
    wired = None if slot is None else known(slot.slot_max_link_width)
    return min(lanes, wired) if lanes and wired else None


def fastest_of(gpu: Gpu, slot: PciDevice | None) -> int | None:
    """The generation that card and slot have together, as NVML has it, and no more than /sys has."""
    speed = None if slot is None else known(slot.slot_max_link_gts)
    generations = [known(gpu.pcie_gen_max), GENERATION_OF.get(speed) if speed else None]
    if generations[0] is None:
        return None
    return min(generation for generation in generations if generation)


_SEE = (
    link_state("{}"),
    "nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.current,pcie.link.width.current --format=csv",
)
_FIELDS = "pcie_width pcie_width_max pcie_gen pcie_gen_max utilization_percent performance_state"


def _narrow(
    view: SnapshotView, gpu: Gpu, slot: PciDevice | None, short: str, broken: bool
) -> Finding:
    if in_virtual_machine(view, gpu):
        remedy = Remedy(
            "Look on the host, where the slot is seen: reseat the GPU or its riser there, or take another"
            " slot; with a cloud, ask for another machine.",
            [_SEE[1]],
        )
    else:
        remedy = Remedy(
            "Reseat the GPU or its riser (one with all lanes), or take another slot; look at the slot's"
            " width and generation in the firmware, and compare with the other GPUs.",
            [command.format(address_of(gpu)) for command in _SEE],
        )
    found = finding(
        view,
        "fail" if broken else "warn",
        gpu,
        f"Under load the PCIe link runs at {short}: copies between host and GPU take that much longer.",
        _FIELDS,
        remedy,
        "has a slow PCIe link under load",
    )
    return _with_slot(view, found, slot)


def _in_a_small_slot(
    view: SnapshotView, gpu: Gpu, slot: PciDevice | None, wired: str, lanes: int
) -> Finding:
    found = finding(
        view,
        "warn",
        gpu,
        f"The slot or riser has {wired} of the card's x{lanes}: copies between host and GPU take that much"
        " longer, and jobs on several GPUs wait for this one, or stop with it.",
        _FIELDS,
        Remedy(
            "Put the GPU into a slot with 16 (or 8) lanes, without a riser of one lane.",
            [command.format(address_of(gpu)) for command in _SEE],
        ),
        f"is in a slot of {wired}",
    )
    return _with_slot(view, found, slot)


def _with_slot(view: SnapshotView, found: Finding, slot: PciDevice | None) -> Finding:
    if slot is not None and known(slot.slot_max_link_width) is not None:
        told = f"{known(slot.slot) or slot.address}: slot x{known(slot.slot_max_link_width)}"
        found.evidence.append(view.evidence("machine.pci.devices", told))
    return found


@check(
    "GPU-018",
    title="The PCIe link is clean",
    problem="has errors on its PCIe link",
    about="A PCIe link sends a packet again when it arrived damaged. A few replays are normal; thousands"
    " tell of a bad contact, riser or cable, and cost bandwidth before the GPU falls off the bus: a"
    " warning.",
    sources=("nvidia-smi(1), Replays Since Reset",),
    follows=NO_GPUS,
)
def link_is_clean(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _replays(view, gpu))


def _replays(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    replays = need(gpu.pcie_replays, "the replays on the PCIe link")
    if replays >= REPLAYS_LIMIT:
        yield finding(
            view,
            "warn",
            gpu,
            f"{replays} packets on the PCIe link had to be sent again since the last reset: the contact is"
            " bad, and bandwidth is lost.",
            "pcie_replays",
            Remedy(
                "Reseat the GPU, its riser or cable, and see whether the count still rises under load.",
                [
                    f"nvidia-smi -q -i {address_of(gpu)} | grep -i replay",
                    "sudo dmesg | grep -i 'pcie.*aer'",
                ],
            ),
        )
    else:
        yield Passed("few replays" if replays else "no replay")
