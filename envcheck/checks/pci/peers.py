"""The check that holds a GPU's PCIe link against those of the other GPUs of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about_gpu
from ..driver_state import NO_GPUS
from ..gpu.link import GENERATION_OF, in_virtual_machine, pci_device, under_load
from ..gpus import address_of
from ..on_the_bus import link_state
from ..peer_groups import groups, of_many_makers
from ..registry import check

# So many boards of many makers in one machine are a server's, whose slots are alike.
_SERVER = 4


class Link(NamedTuple):
    """One number of a link. field: the Gpu's; slot: what the slot has of it, where that is known."""

    words: str
    field: str
    value: Callable[[Gpu], int | None]
    slot: Callable[[SnapshotView, Gpu], int | None]


def _slot_lanes(view: SnapshotView, gpu: Gpu) -> int | None:
    device = None if in_virtual_machine(view, gpu) else pci_device(view, gpu)
    return None if device is None else known(device.slot_max_link_width)


def _slot_generation(view: SnapshotView, gpu: Gpu) -> int | None:
    device = None if in_virtual_machine(view, gpu) else pci_device(view, gpu)
    speed = None if device is None else known(device.slot_max_link_gts)
    return GENERATION_OF.get(speed) if speed else None


LINKS = (
    Link("lanes", "pcie_width", lambda gpu: known(gpu.pcie_width), _slot_lanes),
    Link("lanes at most", "pcie_width_max", lambda gpu: known(gpu.pcie_width_max), _slot_lanes),
    Link(
        "generation under load",
        "pcie_gen",
        lambda gpu: known(gpu.pcie_gen) if under_load(gpu) else None,
        _slot_generation,
    ),
    Link(
        "generation at most",
        "pcie_gen_max",
        lambda gpu: known(gpu.pcie_gen_max),
        _slot_generation,
    ),
    Link(
        "generation of the card",
        "pcie_gen_max_device",
        lambda gpu: known(gpu.pcie_gen_max_device),
        lambda _view, _gpu: None,
    ),
)


@check(
    "PCI-008",
    title="GPUs of one name have equal PCIe links",
    problem="has a slower PCIe link than its peers",
    about="GPUs of one name in a server sit in equal slots: one with fewer lanes, or a lower generation, than"
    " most others has a bad contact, riser or cable, or a slot that the firmware split. This is seen in"
    " virtual machines too, where the slot is not, and in documents. Where most have no more, and where a"
    " desktop's slots are wired differently, nothing is told. A warning.",
    sources=("NVSentinel#890 (silently slow)", "nvidia-smi(1), GPU Link information"),
    follows=(*NO_GPUS, "PCI-004", "PCI-005", "GPU-010"),
)
def links_are_alike(view: SnapshotView) -> Iterator[Verdict]:
    for gpus in groups(view):
        slower: dict[int, list[tuple[Link, int, int]]] = {}
        for link in LINKS:
            for place, usual in _slower(view, gpus, link):
                value = link.value(gpus[place])
                slower.setdefault(place, []).append((link, value or 0, usual))
        for place, links in sorted(slower.items()):
            yield _finding(view, gpus[place], links)
        if not slower and any(link.value(gpu) for link in LINKS for gpu in gpus):
            yield Passed(f"{len(gpus)} × {known(gpus[0].name)}: equal, or as their slots are")


def _slower(view: SnapshotView, gpus: list[Gpu], link: Link) -> list[tuple[int, int]]:
    """(place of a GPU, what its peers have) of those that are slower by no fault of the slots' layout."""
    told = {place: value for place, gpu in enumerate(gpus) if (value := link.value(gpu))}
    most = max(told.values(), default=0)
    odd = [place for place, value in told.items() if value < most]
    if not odd or (len(odd) * 2 >= len(told) and len(told) > 2):
        return []  # as many have less: the slots are of two kinds
    slots = [link.slot(view, gpus[place]) for place in odd]
    by_layout = all(
        slot is not None and slot <= told[n] for n, slot in zip(odd, slots, strict=True)
    )
    makers = of_many_makers(gpus[0])
    if by_layout and (makers or len(odd) > 1 or len(told) == 2):
        return []
    if makers and None in slots and (len(told) < _SERVER or len(odd) > 1):
        return []
    return [(place, most) for place in odd]


def _finding(view: SnapshotView, gpu: Gpu, links: list[tuple[Link, int, int]]) -> Finding:
    told = "; ".join(f"{link.words} {value} (its peers: {usual})" for link, value, usual in links)
    virtual = in_virtual_machine(view, gpu)
    where = "On the host, reseat" if virtual else "Reseat"
    commands = [
        "nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.current,pcie.link.gen.max,"
        "pcie.link.width.current,pcie.link.width.max --format=csv"
    ]
    if not virtual:
        commands.append(link_state(address_of(gpu)))
    return Finding(
        "warn",
        f"Its PCIe link is slower than those of the other GPUs of its name: {told}. Copies to it take longer,"
        " and jobs on all GPUs wait for it.",
        about_gpu(gpu),
        [view.gpu_evidence(gpu, link.field) for link, _value, _usual in links],
        Remedy(
            f"{where} the GPU, its riser or cable, and look at the slot's width and generation in the"
            " firmware.",
            commands,
        ),
    )
