"""Checks on what the kernel itself logs of the GPUs' bus: PCIe errors, refused accesses, machine checks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.base import known
from ...facts.kernel import KernelEvent
from ...facts.pci import PciDevice
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ...findings.subjects import about_device
from ..driver_state import REPORT
from ..nvidia_devices import event_evidence, kernel_facts, listed_gpus, pci_gpus
from ..on_the_bus import error_counts
from ..pci.link import IOMMU_PASSES
from ..registry import check

_ADDRESS = re.compile(r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b")
_FATAL = re.compile(
    r"Uncorrected|Uncorrectable|Fatal|can't recover|recovery failed|containment|Link Down|power state"
)
_FOR_SURE = re.compile(r"\(Fatal\)|can't recover|recovery failed|containment|Link Down")
_ALL_WELL = re.compile(
    r"recovery successful|enabled with|error containment capabilities|Corrected|Correctable"
)


@check(
    "KRN-015",
    title="The kernel logs no errors of the GPUs' bus",
    problem="has errors of its bus in the kernel log",
    about="The kernel itself logs what goes wrong between it and a GPU: PCIe errors (AER) of the GPU or of"
    " the port above it, a link that went down, accesses of the GPU that the IOMMU refused, machine checks."
    " Fatal PCIe errors and links that went down are a failure: they end jobs, often without an Xid,"
    " and come from cables, risers, slots, power or the board. Corrected errors are counted by another"
    " check; those of other devices do not count here.",
    sources=(
        "wilicc/gpu-burn#1",
        "rwth-i6/returnn#1500",
        "Linux kernel, PCI/pcieaer-howto",
        "NVIDIA/cuda-samples#48 (IO_PAGE_FAULT)",
    ),
    follows=("PCI-001", "PCI-004"),
)
def no_bus_errors(view: SnapshotView) -> Iterator[Verdict]:
    events = need(kernel_facts(view).log, "the kernel log")
    gpus = pci_gpus(view)
    for gpu in gpus:
        own = [event for event in events if _is_of(event, gpu)]
        broken = [e for e in own if e.kind == "pcie" and _is_fatal(e.text)]
        refused = [e for e in own if e.kind == "iommu"]
        if broken:
            yield _broken(view, gpu, broken)
        if refused:
            yield _refused(view, gpu, refused)
    checks = [event for event in events if event.kind == "machine-check"]
    if checks:
        yield _machine_check(view, checks)
    yield Passed(f"none of {len(gpus)} GPUs since boot")


def _is_of(event: KernelEvent, gpu: PciDevice) -> bool:
    """Whether it is of the GPU, of another function of its board, or of the port above it."""
    if event.kind not in ("pcie", "iommu"):
        return False
    board = gpu.address.rpartition(".")[0]
    named = {known(event.pci_address) or "", *_ADDRESS.findall(event.text)}
    slot = known(gpu.slot)
    return any(name.startswith(board + ".") or (slot and name == slot) for name in named)


def _is_fatal(text: str) -> bool:
    return bool(_FATAL.search(text)) and not _ALL_WELL.search(text)


def _broken(view: SnapshotView, gpu: PciDevice, events: list[KernelEvent]) -> Finding:
    port = known(gpu.slot)
    listed = gpu.address in listed_gpus(view)
    fatal = not listed or any(_FOR_SURE.search(event.text) for event in events)
    return Finding(
        "fail" if fatal else "warn",
        "The kernel logged PCIe errors of this GPU that could not be corrected: "
        + (
            "jobs on it end or hang, and it may fall off the bus."
            if fatal
            else "none of them was fatal, and the driver lists the GPU."
        ),
        subjects=about_device(gpu),
        evidence=[event_evidence(view, event) for event in events[-3:]],
        remedy=Remedy(
            "Power the machine off; check the GPU's seating, riser or cable, slot and power; bring the"
            " machine's firmware up to date. Where it comes back in another slot, too, replace the board.",
            [
                error_counts(word(gpu.address)),
                *([error_counts(word(port))] if port else []),
                REPORT,
                "sudo poweroff",
            ],
        ),
        headline="has uncorrected PCIe errors in the kernel log",
    )


def _refused(view: SnapshotView, gpu: PciDevice, events: list[KernelEvent]) -> Finding:
    return Finding(
        "warn",
        f"The IOMMU refused accesses of this GPU ({sum(e.count for e in events)} times): transfers between"
        " GPUs, or to a network card, give wrong data or hang.",
        subjects=about_device(gpu),
        evidence=[event_evidence(view, event) for event in events[-2:]],
        remedy=Remedy(
            "On bare metal let the IOMMU pass addresses through (iommu=pt); in a virtual machine do so on its"
            f" host. Then reboot. {IOMMU_PASSES}",
            ["cat /proc/cmdline"],
        ),
        headline="has accesses that the IOMMU refused",
    )


def _machine_check(view: SnapshotView, events: list[KernelEvent]) -> Finding:
    return Finding(
        "warn",
        "The machine itself (CPU, memory or PCIe root) reported a hardware error that it could not correct.",
        evidence=[event_evidence(view, event) for event in events[-2:]],
        remedy=Remedy(
            "Read what it was; have the memory module, CPU or board that it names examined.",
            [
                "sudo dmesg | grep -F '[Hardware Error]'",
                "sudo ras-mc-ctl --errors  # where rasdaemon runs",
            ],
        ),
        headline="the machine has hardware errors in the kernel log",
    )
