"""The check on what the kernel logs about the GPUs' bus: PCIe errors, refused accesses, machine checks."""

from __future__ import annotations

import re

from ..declared import declared_causes, declared_rows
from ..driver_state import REPORT
from ..nvidia_devices import device_evidence, kernel_facts, pci_gpus
from ..on_the_bus import error_counts
from ..reading import KernelEvent, PciDevice, SnapshotView, known, need
from ..verdicts import Params, Passed, Verdicts, about_device, check, word
from .events import found_line

CAUSE = declared_causes(__name__)

_ADDRESS = re.compile(r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b")
_LINES = declared_rows(__name__)


@check("KRN-015")
def no_bus_errors(view: SnapshotView) -> Verdicts:
    events = need(kernel_facts(view).log, "the kernel log")
    gpus = pci_gpus(view)
    for gpu in gpus:
        yield from _of_gpu(view, gpu, [event for event in events if _is_of(event, gpu)])
    yield Passed(f"none of {len(gpus)} GPUs since boot")


def _of_gpu(view: SnapshotView, gpu: PciDevice, events: list[KernelEvent]) -> Verdicts:
    logged: set[tuple[str, ...]] = set()  # the first row of a kind that fits is the worst
    for row in _LINES:
        lines = [event for event in events if row.fits(event.kind, event.text)]
        if lines and row.names not in logged:
            logged.add(row.names)
            yield from found_line(view, row, gpu.address, lines)
    counted = {name: known(getattr(gpu, name)) or 0 for name in ("aer_fatal", "aer_nonfatal")}
    if ("pcie",) not in logged and any(counted.values()):
        evidence = device_evidence(view, gpu, *counted)
        commands = [error_counts(word(gpu.address)), REPORT]
        params: Params = {name.partition("_")[2]: number for name, number in counted.items()}
        yield CAUSE["pcie-errors-counted"].found(
            about_device(gpu), evidence, commands=commands, **params
        )


def _is_of(event: KernelEvent, gpu: PciDevice) -> bool:
    """Whether it is of the GPU, of another function of its board, or of the port above it."""
    board = gpu.address.rpartition(".")[0]
    named = {known(event.pci_address) or "", *_ADDRESS.findall(event.text)}
    slot = known(gpu.slot)
    return any(name.startswith(board + ".") or (slot and name == slot) for name in named)
