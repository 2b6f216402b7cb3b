"""How many GPUs have to arrive in a container, from what the machine's documents list. Pure."""

from __future__ import annotations

from ...checks.driver_state import on_wsl
from ...facts.missing import CannotJudge
from ...facts.view import SnapshotView, known


def expected(view: SnapshotView) -> int:
    """Device nodes: one for each GPU that the driver lists, whether it is cut up by MIG or not.

    In WSL2 it is 1: /dev/dxg stands for all. Where the driver could not be asked, the GPUs on the PCI bus
    that have it for their driver.
    """
    try:
        count = len(view.gpus)
    except CannotJudge:
        count = _on_the_bus(view)
    return min(count, 1) if on_wsl(view) else count


def _on_the_bus(view: SnapshotView) -> int:
    pci = view.machine.pci
    devices = known(pci.facts.devices) if pci is not None and pci.facts is not None else None
    return sum(one.kind == "gpu" and known(one.driver) == "nvidia" for one in devices or [])
