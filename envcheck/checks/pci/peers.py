"""The check that compares a GPU's PCIe link with those of the other GPUs of its name."""

from __future__ import annotations

from typing import NamedTuple

from ..driver_state import NO_GPUS
from ..gpu.link import GENERATION_OF, in_virtual_machine, pci_device, under_load
from ..gpus import found
from ..on_the_bus import link_state
from ..peer_groups import groups, of_many_makers
from ..reading import Gpu, SnapshotView, known
from ..verdicts import Passed, Verdicts, check, warn

# So many boards of many makers in one machine are a server's, with equal slots.
_SERVER = 4


class Link(NamedTuple):
    """One number of a link. slot: which of the slot's numbers limits it; "" if none does."""

    words: str
    field: str
    slot: str = ""

    def of(self, gpu: Gpu) -> int | None:
        value: int | None = known(getattr(gpu, self.field))
        return None if self.field == "pcie_gen" and not under_load(gpu) else value

    def of_slot(self, view: SnapshotView, gpu: Gpu) -> int | None:
        device = None if in_virtual_machine(view, gpu) else pci_device(view, gpu)
        if device is None or not self.slot:
            return None
        if self.slot == "lanes":
            return known(device.slot_max_link_width)
        return GENERATION_OF.get(known(device.slot_max_link_gts) or 0)


LINKS = (
    Link("lanes", "pcie_width", "lanes"),
    Link("lanes at most", "pcie_width_max", "lanes"),
    Link("generation under load", "pcie_gen", "generation"),
    Link("generation at most", "pcie_gen_max", "generation"),
    Link("generation of the card", "pcie_gen_max_device"),
)
_QUERY = (
    "nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,"
    "pcie.link.width.max --format=csv"
)
SLOWER = warn(
    "link-slower-than-peers",
    "has a slower PCIe link than its peers",
    "Its PCIe link is slower than those of the other GPUs of its name: {values}. Copies to it take longer,"
    " and jobs on all GPUs wait for it.",
    "Reseat the GPU, its riser or cable (in a virtual machine, on its host), and check the slot's width and"
    " generation in the firmware.",
    _QUERY,
    link_state("{gpu}"),
)


@check(
    "PCI-008",
    title="GPUs of one name have equal PCIe links",
    causes=(SLOWER,),
    about="GPUs of one name in a server sit in equal slots: one with fewer lanes, or a lower generation,"
    " than most others has a bad contact, riser or cable, or a slot that the firmware split. Nothing is"
    " reported if most have no more, or if a desktop's slots are wired differently.",
    sources=["NVSentinel#890 (silently slow); nvidia-smi(1), GPU Link information"],
    follows=(*NO_GPUS, "PCI-004", "PCI-005", "GPU-010"),
)
def links_are_equal(view: SnapshotView) -> Verdicts:
    for gpus in groups(view):
        slower: dict[int, list[tuple[Link, int]]] = {}
        for link in LINKS:
            for place, usual in _slower(view, gpus, link):
                slower.setdefault(place, []).append((link, usual))
        for place, links in sorted(slower.items()):
            gpu = gpus[place]
            values = [f"{link.words} {link.of(gpu)} (its peers: {most})" for link, most in links]
            fields = " ".join(link.field for link, _most in links)
            yield found(view, SLOWER, gpu, fields, values="; ".join(values))
        if not slower and any(link.of(gpu) for link in LINKS for gpu in gpus):
            yield Passed(f"{len(gpus)} × {known(gpus[0].name)}: equal, or as their slots are")


def _slower(view: SnapshotView, gpus: list[Gpu], link: Link) -> list[tuple[int, int]]:
    """(place of a GPU, what its peers have) of those that are slower for no reason of the slots' layout."""
    values = {place: value for place, gpu in enumerate(gpus) if (value := link.of(gpu))}
    most = max(values.values(), default=0)
    less = [place for place, value in values.items() if value < most]
    if not less or (len(less) * 2 >= len(values) and len(values) > 2):
        return []  # as many have less: the slots are of two kinds
    slots = [link.of_slot(view, gpus[place]) for place in less]
    by_layout = all(
        slot is not None and slot <= values[n] for n, slot in zip(less, slots, strict=True)
    )
    makers = of_many_makers(gpus[0])
    if by_layout and (makers or len(less) > 1 or len(values) == 2):
        return []
    if makers and None in slots and (len(values) < _SERVER or len(less) > 1):
        return []
    return [(place, most) for place in less]
