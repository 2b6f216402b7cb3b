"""The check on what the kernel logs about the GPUs' bus: PCIe errors, refused accesses, machine checks."""

from __future__ import annotations

import re

from ..driver_state import REPORT
from ..nvidia_devices import device_evidence, event_evidence, kernel_facts, listed_gpus, pci_gpus
from ..on_the_bus import error_counts
from ..pci.link import IOMMU_PASSES
from ..reading import KernelEvent, PciDevice, SnapshotView, known, need
from ..verdicts import Params, Passed, Verdicts, about_device, check, fail, warn, word

_ADDRESS = re.compile(r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b")
_UNCORRECTED = re.compile(
    r"Uncorrected|Uncorrectable|Fatal|can't recover|recovery failed|containment|Link Down|power state"
)
_FATAL = re.compile(r"\(Fatal\)|can't recover|recovery failed|containment|Link Down")
_HARMLESS = re.compile(
    r"recovery successful|enabled with|error containment capabilities|Corrected|Correctable"
)

_ERRORS = "The kernel logged PCIe errors of this GPU that could not be corrected: "
FATAL = fail(
    "pcie-fatal",
    "has fatal PCIe errors in the kernel log",
    _ERRORS + "jobs on it end or hang, and it may fall off the bus.",
    "Power the machine off; check the GPU's seating, riser or cable, slot and power; update the machine's"
    " firmware. If it comes back in another slot, too, replace the board.",
)
UNCORRECTED = FATAL.variant(
    "pcie-uncorrected",
    severity="warn",
    headline="has uncorrected PCIe errors in the kernel log",
    sentence=_ERRORS + "none of them was fatal, and the driver lists the GPU.",
)
COUNTED = UNCORRECTED.variant(
    "pcie-errors-counted",
    headline="has counted uncorrected PCIe errors",
    sentence="The GPU's PCIe error counters say {fatal} fatal and {nonfatal} other errors since boot that"
    " could not be corrected, and the kernel log does not hold them: jobs on it may have ended or hung.",
)
REFUSED = warn(
    "iommu-refused",
    "has accesses that the IOMMU refused",
    "The IOMMU refused accesses of this GPU ({times} times): transfers between GPUs, or to a network card,"
    " give wrong data or hang.",
    "On bare metal let the IOMMU pass addresses through (iommu=pt); in a virtual machine do so on its host."
    f" Then reboot. {IOMMU_PASSES}",
    "cat /proc/cmdline",
)


@check(
    "KRN-015",
    title="The kernel logs no errors of the GPUs' bus",
    causes=[FATAL, UNCORRECTED, COUNTED, REFUSED],
    about="The kernel itself logs PCIe errors (AER) of the GPU or of the port above it, a link that went"
    " down, accesses that the IOMMU refused, machine checks.",
    sources=["wilicc/gpu-burn#1; rwth-i6/returnn#1500; Linux kernel, PCI/pcieaer-howto"],
    follows=("PCI-001", "PCI-004", "PCI-007"),
)
def no_bus_errors(view: SnapshotView) -> Verdicts:
    events = need(kernel_facts(view).log, "the kernel log")
    gpus = pci_gpus(view)
    for gpu in gpus:
        yield from _of_gpu(view, gpu, [event for event in events if _is_of(event, gpu)])
    yield Passed(f"none of {len(gpus)} GPUs since boot")


def _of_gpu(view: SnapshotView, gpu: PciDevice, events: list[KernelEvent]) -> Verdicts:
    broken = [
        event
        for event in events
        if event.kind == "pcie"
        and _UNCORRECTED.search(event.text)
        and not _HARMLESS.search(event.text)
    ]
    if broken:
        lost = gpu.address not in listed_gpus(view)
        fatal = lost or any(_FATAL.search(event.text) for event in broken)
        addresses = filter(None, (gpu.address, known(gpu.slot)))
        counts = [error_counts(word(address)) for address in addresses]
        yield (FATAL if fatal else UNCORRECTED).found(
            about_device(gpu),
            [event_evidence(view, event) for event in broken[-3:]],
            commands=[*counts, REPORT, "sudo poweroff"],
        )
    counted = {name: known(getattr(gpu, name)) or 0 for name in ("aer_fatal", "aer_nonfatal")}
    if not broken and any(counted.values()):
        evidence = device_evidence(view, gpu, *counted)
        commands = [error_counts(word(gpu.address)), REPORT]
        params: Params = {name.partition("_")[2]: number for name, number in counted.items()}
        yield COUNTED.found(about_device(gpu), evidence, commands=commands, **params)
    refused = [event for event in events if event.kind == "iommu"]
    if refused:
        evidence = [event_evidence(view, event) for event in refused[-2:]]
        times = sum(event.count for event in refused)
        yield REFUSED.found(about_device(gpu), evidence, times=times)


def _is_of(event: KernelEvent, gpu: PciDevice) -> bool:
    """Whether it is of the GPU, of another function of its board, or of the port above it."""
    if event.kind not in ("pcie", "iommu"):
        return False
    board = gpu.address.rpartition(".")[0]
    named = {known(event.pci_address) or "", *_ADDRESS.findall(event.text)}
    slot = known(gpu.slot)
    return any(name.startswith(board + ".") or (slot and name == slot) for name in named)
