"""Checks on each GPU's PCIe link: its speed and width under load, and its replays."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.missing import Skip
from ...facts.pci import PciDevice
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..driver_state import NO_GPUS
from ..gpus import address_of, finding, judge_gpus
from ..registry import check

BUSY_PERCENT = 50
BUSY_STATES = ("P0", "P1", "P2")
REPLAYS_LIMIT = 1000

# GT/s of a PCIe lane by generation: PCI Express Base Specification.
_GENERATION_OF = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}


@check(
    "GPU-010",
    title="The PCIe link runs at full speed and width under load",
    problem="has a slow PCIe link under load",
    about="A link with fewer lanes or a lower generation than card and slot have slows down data loading"
    " and, without NVLink, the exchange of gradients. An idle GPU lowers its link by itself and many slots"
    " have 8 lanes, so the link is judged under load alone (utilisation of 50 % or more, or a full"
    " performance state that is not idle), and its width against the slot, never against the card alone."
    " A link that is not full under load is a warning.",
    sources=(
        "NVSentinel#890 (silently slow)",
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
    if width >= (known(gpu.pcie_width_max) or 99) and generation >= (known(gpu.pcie_gen_max) or 99):
        yield Passed(f"generation {generation} x{width}, as the card has them")
        return
    if in_virtual_machine(view, gpu):
        raise Skip("the PCIe link: a virtual machine does not see the slot that the GPU is in")
    slot = pci_device(view, gpu)
    widest, fastest = _widest(gpu, slot), _fastest(gpu, slot)
    short: list[str] = []
    if widest is not None and width < widest:
        short.append(f"x{width} of x{widest}")
    if fastest is not None and generation < fastest:
        short.append(f"generation {generation} of {fastest}")
    if short and not under_load(gpu):
        raise Skip("the PCIe link of an idle GPU: it is judged under load")
    if short:
        yield _narrow(view, gpu, slot, " and ".join(short))
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


def _widest(gpu: Gpu, slot: PciDevice | None) -> int | None:
    """Lanes that card and slot have together; None where the slot's are not known."""
    lanes = None if slot is None else known(slot.slot_max_link_width)
    card = known(gpu.pcie_width_max) or (known(slot.max_link_width) if slot is not None else None)
    return min(lanes, card) if lanes and card else None


def _fastest(gpu: Gpu, slot: PciDevice | None) -> int | None:
    """The generation that card and slot have together, as NVML has it, and no more than /sys has."""
    speed = None if slot is None else known(slot.slot_max_link_gts)
    generations = [known(gpu.pcie_gen_max), _GENERATION_OF.get(speed) if speed else None]
    if generations[0] is None:
        return None
    return min(generation for generation in generations if generation)


def _narrow(view: SnapshotView, gpu: Gpu, slot: PciDevice | None, short: str) -> Finding:
    found = finding(
        view,
        "warn",
        gpu,
        f"Under load the PCIe link runs at {short}: copies between host and GPU take that much longer.",
        "pcie_width pcie_width_max pcie_gen pcie_gen_max utilization_percent performance_state",
        Remedy(
            "Reseat the GPU or its riser, look at the slot's setting in the firmware, and compare with the"
            " other GPUs.",
            [
                f"sudo lspci -vv -s {address_of(gpu)} | grep -E 'LnkCap:|LnkSta:'",
                "nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.current,pcie.link.width.current"
                " --format=csv",
            ],
        ),
    )
    if slot is not None and known(slot.slot_max_link_width) is not None:
        told = f"{slot.address}: slot x{known(slot.slot_max_link_width)}"
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
