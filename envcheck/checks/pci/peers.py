"""The check that compares a GPU's PCIe link with those of the other GPUs of its name."""

from __future__ import annotations

from ..driver_state import NO_GPUS
from ..gpu.peers import Shared, compared
from ..on_the_bus import link_state
from ..reading import SnapshotView
from ..verdicts import Verdicts, check, warn

SLOWER = warn(
    "link-slower-than-peers",
    "has a slower PCIe link than its peers",
    "Its PCIe link differs from those of the other GPUs of its name: {values}. Jobs on all GPUs wait for it.",
    "Reseat the GPU, its riser or cable (in a virtual machine, on its host), and check the slot's width and"
    " generation in the firmware.",
    link_state("{gpu}"),
)
_LINK = [
    Shared("pcie_width", "lanes"),
    Shared("pcie_width_max", "lanes at most"),
    Shared("pcie_gen_max", "generation at most"),
]


@check(
    "PCI-008",
    title="GPUs of one name have equal PCIe links",
    causes=(SLOWER,),
    about="GPUs of one name in a server sit in equal slots: one with fewer lanes, or a lower generation, than"
    " most others has a bad contact, riser or cable, or a slot that the firmware split.",
    sources=["NVSentinel#890 (silently slow); nvidia-smi(1), GPU Link information"],
    follows=(*NO_GPUS, "PCI-004", "PCI-005", "GPU-010"),
)
def links_are_equal(view: SnapshotView) -> Verdicts:
    return compared(view, _LINK, SLOWER)
