"""Checks on what the driver reports in the kernel log: Xids, and GPUs that it could not start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.kernel import Xid, xids
from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.kernel import KernelEvent
from ...facts.missing import CannotJudge
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ...findings.subjects import about_device_at
from ..driver_state import REBOOT
from ..nvidia_devices import event_evidence, held_for_guests, kernel_facts, listed_gpus, pci_gpus
from ..registry import check

FALLEN = 79  # told by PCI-004
ADVICE = 154  # what the driver wants done with a GPU
# "Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
_CHANGED = re.compile(
    r"recovery action changed from [^()]{0,40}\([^()]{0,40}\) to [^()]{0,40}\(([^()]{1,40})\)"
)
NONFATAL = re.compile(r"\bNon-?fatal\b", re.I)
REPORT = "sudo nvidia-bug-report.sh"
COULD_NOT_START = re.compile(r"RmInitAdapter failed|PCI I/O region|probe (of|with driver)")
BAD_REGION = "PCI I/O region"


@check(
    "KRN-008",
    title="No serious GPU errors in the kernel log",
    problem="has serious errors in the kernel log",
    about="The driver logs each GPU error with a number, the Xid; NVSwitches log SXids. Some call for a"
    " reset or a new board (uncorrectable memory errors, a system processor that does not answer), some"
    " are to be watched, and some (13, 31, 43, 45) are mostly faults of an application and are only"
    " mentioned. Judged by a table of codes after NVIDIA's catalog, over the kernel log since boot. Xid 79"
    " is reported by the check on the bus, and a memory error that the GPU's own counters show by"
    " theirs, and Xid 154 counts where the GPU does not say itself which recovery it needs now; a code"
    " that is not in the table is a warning.",
    sources=(
        "NVIDIA Xid catalog, docs.nvidia.com/deploy/xid-errors",
        "NVIDIA fabric manager user guide, SXids",
    ),
    follows=("PCI-001", "PCI-004", "GPU-001"),
)
def xids_in_log(view: SnapshotView) -> Iterator[Verdict]:
    events = need(kernel_facts(view).log, "the kernel log")
    mentioned = []
    advice: dict[str | None, KernelEvent] = {}  # the last word of each GPU
    for event in events:
        code = known(event.xid)
        if event.kind == "sxid":
            if not NONFATAL.search(event.text):
                yield _fatal_sxid(view, event)
        elif event.kind == "xid" and code is not None and code != FALLEN:
            if code == ADVICE:
                advice[known(event.pci_address)] = event
            xid = xids().get(code)
            if xid is None:
                yield _unknown(view, event)
                continue
            severity = _severity(view, xid, event)
            if severity == "info":
                mentioned.append(f"Xid {code} ({xid.meaning})")
            else:
                yield _xid(view, event, xid, severity)
    for event in advice.values():
        yield from _advice(view, event)
    yield Passed("; ".join(dict.fromkeys(mentioned)) or "none since boot")


def _unknown(view: SnapshotView, event: KernelEvent) -> Finding:
    times = f", {event.count} times" if event.count > 1 else ""
    return Finding(
        "warn",
        f"Xid {known(event.xid)}{times}, which is not in envcheck's table.",
        subjects=about_device_at("gpu", known(event.pci_address)),
        evidence=[event_evidence(view, event)],
        remedy=Remedy(
            "Look it up in NVIDIA's Xid catalogue; the report holds what the driver saw.", [REPORT]
        ),
        headline=f"has Xid {known(event.xid)} in the kernel log",
    )


def _advice(view: SnapshotView, event: KernelEvent) -> Iterator[Finding]:
    """What the driver wants done, by its own log, where no document of the GPU says what it wants now."""
    address = known(event.pci_address)
    gpu, wanted = _listed(view, address), _CHANGED.search(event.text)
    if wanted is None or wanted[1].lower() == "none":
        return
    if gpu is not None and known(gpu.recovery_action) is not None:
        return
    action = "reboot" if "reboot" in wanted[1].lower() else "reset"
    yield Finding(
        "fail",
        f"The driver asks for recovery of this GPU ({wanted[1]}): until then its results are not to be relied"
        " on.",
        subjects=about_device_at("gpu", address),
        evidence=[event_evidence(view, event)],
        remedy=Remedy(
            "Do what it asks for, once no process uses the GPU.", _commands(action, address)
        ),
        headline=f"asks for recovery ({wanted[1]})",
    )


def _severity(view: SnapshotView, xid: Xid, event: KernelEvent) -> str:
    if xid.nonfatal_severity and NONFATAL.search(event.text):
        return xid.nonfatal_severity
    gpu = _listed(view, known(event.pci_address))
    if gpu is None:
        return xid.severity
    left = [known(getattr(gpu, name)) for name in xid.settled_by]
    settled = False in left and True not in left
    shown = any(known(getattr(gpu, name)) for name in xid.shown_by)
    return "info" if settled or shown else xid.severity


def _listed(view: SnapshotView, address: str | None) -> Gpu | None:
    try:
        return next((gpu for gpu in view.gpus if known(gpu.pci_address) == address), None)
    except CannotJudge:
        return None


def _xid(view: SnapshotView, event: KernelEvent, xid: Xid, severity: str) -> Finding:
    times = f", {event.count} times" if event.count > 1 else ""
    return Finding(
        "fail" if severity == "fail" else "warn",
        f"Xid {xid.code}{times}: {xid.meaning}.",
        subjects=about_device_at("gpu", known(event.pci_address)),
        evidence=[event_evidence(view, event)],
        remedy=Remedy(xid.remedy, _commands(xid.action, known(event.pci_address))),
        headline=f"has Xid {xid.code} in the kernel log",
    )


def _commands(action: str, address: str | None) -> list[str]:
    return {
        "reset": [f"sudo nvidia-smi --gpu-reset -i {word(address)}" if address else REBOOT],
        "reboot": [REPORT, REBOOT],
        "off": ["sudo poweroff"],
        "report": [REPORT],
    }.get(action, [])


def _fatal_sxid(view: SnapshotView, event: KernelEvent) -> Finding:
    address = known(event.pci_address)
    return Finding(
        "fail",
        f"An NVSwitch reported a fatal error (SXid {known(event.xid)}): transfers between GPUs fail, and"
        " jobs on them hang or die.",
        subjects=about_device_at("nvswitch", address),
        evidence=[event_evidence(view, event)],
        remedy=Remedy(
            "Reboot; where it comes back, have the baseboard examined.",
            [REPORT, "journalctl -u nvidia-fabricmanager -n 50", REBOOT],
        ),
    )


@check(
    "KRN-013",
    title="The driver started every GPU",
    problem="was not started by the driver",
    about="The driver may hold a GPU and yet not be able to start it: its firmware does not answer, or"
    " the machine's firmware has given it no room for its memory (BAR1 is 0M). nvidia-smi then lists"
    " fewer GPUs than there are, or none. Judged by the driver's own words in the kernel log; a GPU that"
    " the driver lists now has been started since.",
    sources=(
        "NVIDIA/open-gpu-kernel-modules#789",
        "NVIDIA/gpu-operator#492",
        "NVIDIA/cuda-samples#104",
    ),
    follows=("PCI-001", "PCI-002", "PCI-004", "KRN-002", "KRN-009", "DRV-002"),
)
def every_gpu_started(view: SnapshotView) -> Iterator[Verdict]:
    events = need(kernel_facts(view).log, "the kernel log")
    well = {*listed_gpus(view), *_held(view)}
    failed: dict[str, list[KernelEvent]] = {}
    for event in events:
        address = known(event.pci_address)
        told = event.kind == "nvrm" and COULD_NOT_START.search(event.text)
        if told and address and address not in well:
            failed.setdefault(address, []).append(event)
    for address, lines in failed.items():
        yield _not_started(view, address, lines)
    if not failed:
        yield Passed("no failure since boot")


def _held(view: SnapshotView) -> set[str]:
    """Addresses of the GPUs that the driver does not get, since they are held for virtual machines."""
    try:
        return {gpu.address for gpu in pci_gpus(view) if held_for_guests(gpu)}
    except CannotJudge:
        return set()


def _not_started(view: SnapshotView, address: str, events: list[KernelEvent]) -> Finding:
    no_room = any(BAD_REGION in event.text for event in events)
    return Finding(
        "fail",
        "The driver could not start this GPU, "
        + ("since the firmware has given it no room for its memory" if no_room else "and says so")
        + ": nothing can use it.",
        subjects=about_device_at("gpu", address),
        evidence=[event_evidence(view, event) for event in events[-3:]],
        remedy=Remedy(
            "Switch on 'Above 4G decoding' (64-bit BARs) in the firmware; in a virtual machine, give it"
            " 64-bit memory space for devices; else boot with pci=realloc.",
            [f"sudo lspci -vv -s {word(address)} | grep -E 'Region|BAR'"],
        )
        if no_room
        else Remedy(
            "Power the machine off and on; where it stays so, try another version of the driver, then"
            " another slot, then the vendor.",
            ["sudo dmesg | grep -iE 'nvrm|xid'", REPORT, "sudo poweroff"],
        ),
    )
