"""The check that compares a GPU's PCIe link with those of the other GPUs of its name."""

from __future__ import annotations

from ..declared import declared_causes
from ..gpu.peers import Shared, compared
from ..reading import SnapshotView
from ..verdicts import Verdicts, check

CAUSE = declared_causes(__name__)

_LINK = [
    Shared("pcie_width", "lanes"),
    Shared("pcie_width_max", "lanes at most"),
    Shared("pcie_gen_max", "generation at most"),
]


@check("PCI-008")
def links_are_equal(view: SnapshotView) -> Verdicts:
    return compared(view, _LINK, CAUSE["link-slower-than-peers"])
