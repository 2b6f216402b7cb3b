"""Checks on what the driver reports in the kernel log: Xids, and GPUs that it could not start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.kernel import Sxid, Xid, sxids, xids
from ...facts.base import known
from ...facts.kernel import KernelEvent
from ...facts.missing import CannotJudge
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ...findings.subjects import about_device_at
from ..driver_state import REBOOT, REPORT
from ..gpus import DRAIN_P2P, drain_p2p
from ..nvidia_devices import event_evidence, held_for_guests, kernel_facts, listed_gpus, pci_gpus
from ..registry import check
from ..system_commands import on_system
from .events import address_of_event, gpu_at, reset_commands, subjects_at
from .unsupported import is_unsupported, unsupported

FALLEN = 79  # told by PCI-004
ADVICE = 154  # what the driver wants done with a GPU
# "Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
_CHANGED = re.compile(
    r"recovery action changed from [^()]{0,40}\([^()]{0,40}\) to [^()]{0,40}\(([^()]{1,40})\)"
)
NONFATAL = re.compile(r"\bNon-?fatal\b", re.I)
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
    " that is not in the table is a warning. What was logged before the driver was loaded anew, or before it"
    " took back that a GPU needs recovery, is over, and only mentioned.",
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
    over = _Over(events)
    for place, event in enumerate(events):
        code = known(event.xid)
        if event.kind == "sxid":
            found = _sxid(view, event, code)
            if found is None:
                mentioned.append(f"SXid {code} (not fatal)")
            else:
                yield found
        elif event.kind == "xid" and code is not None and code != FALLEN:
            xid = xids().get(code)
            if over.at(place, event, xid):
                mentioned.append(f"Xid {code} before the last reset")
                continue
            if code == ADVICE:
                advice[known(event.pci_address)] = event
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


class _Over:
    """Which Xids are over: the driver was loaded since, or has taken back that the GPU needs recovery."""

    def __init__(self, events: list[KernelEvent]) -> None:
        loads = [place for place, event in enumerate(events) if event.kind == "driver-load"]
        self._loaded = max(loads, default=-1)
        self._well: dict[str | None, int] = {}
        for place, event in enumerate(events):
            wanted = _CHANGED.search(event.text) if known(event.xid) == ADVICE else None
            if wanted is not None and wanted[1].lower() == "none":
                self._well[known(event.pci_address)] = place

    def at(self, place: int, event: KernelEvent, xid: Xid | None) -> bool:
        """Memory that went bad stays so until a reset, and the GPU's own facts tell of it."""
        lasting = xid is not None and bool(xid.shown_by)
        well = self._well.get(known(event.pci_address), -1)
        return place < well or (place < self._loaded and not lasting)


def _unknown(view: SnapshotView, event: KernelEvent) -> Finding:
    times = f", {event.count} times" if event.count > 1 else ""
    return Finding(
        "warn",
        f"Xid {known(event.xid)}{times}, which is not in envcheck's table.",
        subjects=subjects_at(view, known(event.pci_address)),
        evidence=[event_evidence(view, event)],
        remedy=Remedy(
            "Look it up in NVIDIA's Xid catalogue; the report holds what the driver saw.", [REPORT]
        ),
        headline=f"has Xid {known(event.xid)} in the kernel log",
    )


def _advice(view: SnapshotView, event: KernelEvent) -> Iterator[Finding]:
    """What the driver wants done, by its own log, where no document of the GPU says what it wants now."""
    address = known(event.pci_address)
    gpu, wanted = gpu_at(view, address), _CHANGED.search(event.text)
    if wanted is None or wanted[1].lower() == "none":
        return
    if gpu is not None and known(gpu.recovery_action) is not None:
        return
    words = wanted[1].strip().lower()
    action = "reboot" if "reboot" in words else "reset"
    yield Finding(
        "fail",
        f"The driver asks for recovery of this GPU ({wanted[1]}): until then its results are not to be relied"
        " on.",
        subjects=subjects_at(view, address),
        evidence=[event_evidence(view, event)],
        remedy=drain_p2p()
        if words == DRAIN_P2P
        else Remedy(
            "Do what it asks for, once no process uses the GPU.", reset_commands(action, address)
        ),
        headline=f"asks for recovery ({wanted[1]})",
    )


def _severity(view: SnapshotView, xid: Xid, event: KernelEvent) -> str:
    if xid.nonfatal_severity and NONFATAL.search(event.text):
        return xid.nonfatal_severity
    gpu = gpu_at(view, known(event.pci_address))
    if gpu is None:
        return xid.severity
    left = [known(getattr(gpu, name)) for name in xid.settled_by]
    settled = False in left and True not in left
    shown = any(known(getattr(gpu, name)) for name in xid.shown_by)
    return "info" if settled or shown else xid.severity


def _xid(view: SnapshotView, event: KernelEvent, xid: Xid, severity: str) -> Finding:
    times = f", {event.count} times" if event.count > 1 else ""
    return Finding(
        "fail" if severity == "fail" else "warn",
        f"Xid {xid.code}{times}: {xid.meaning}.",
        subjects=subjects_at(view, known(event.pci_address)),
        evidence=[event_evidence(view, event)],
        remedy=Remedy(xid.remedy, reset_commands(xid.action, known(event.pci_address))),
        headline=f"has Xid {xid.code} in the kernel log",
    )


def _sxid(view: SnapshotView, event: KernelEvent, code: int | None) -> Finding | None:
    """The finding on an NVSwitch's error; None for one that needs nothing."""
    address, told = known(event.pci_address), sxids().get(code or 0)
    fatal = not NONFATAL.search(event.text)
    if not fatal and told is None:
        return None
    return Finding(
        "fail" if fatal else "warn",
        f"An NVSwitch reported {'a fatal error' if fatal else 'an error'} (SXid {code}"
        + (f": {told.meaning}" if told else "")
        + (
            "): transfers between GPUs fail, and jobs on them hang or die."
            if fatal
            else "): transfers between GPUs may suffer."
        ),
        subjects=about_device_at("nvswitch", address),
        evidence=[event_evidence(view, event)],
        remedy=_sxid_remedy(told),
    )


def _sxid_remedy(told: Sxid | None) -> Remedy:
    manager = "journalctl -u nvidia-fabricmanager -n 50"
    if told is None:
        return Remedy(
            "Reboot; where it comes back, have the baseboard examined.", [REPORT, manager, REBOOT]
        )
    last = {
        "cool": ["nvidia-smi -q -d TEMPERATURE"],
        "reboot": [REBOOT],
        "reset": ["sudo nvidia-smi --gpu-reset"],
    }
    return Remedy(told.remedy, [REPORT, manager, *last.get(told.action, [REBOOT])])


@check(
    "KRN-013",
    title="The driver started every GPU",
    problem="was not started by the driver",
    about="The driver may hold a GPU and yet not be able to start it: its firmware does not answer, the"
    " machine's firmware has given it no room for its memory (BAR1 is 0M), or this release of the driver does"
    " not know the GPU. nvidia-smi then lists"
    " fewer GPUs than there are, or none. Judged by the driver's own words in the kernel log; a GPU that"
    " the driver lists now has been started since.",
    sources=(
        "NVIDIA/open-gpu-kernel-modules#789, #876, #1230",
        "NVIDIA/gpu-operator#492",
        "NVIDIA/cuda-samples#104",
        "ZaidQureshi/bam#38 (a GPU that the release does not support)",
    ),
    follows=("PCI-001", "PCI-002", "PCI-004", "KRN-002", "KRN-009", "DRV-002"),
)
def every_gpu_started(view: SnapshotView) -> Iterator[Verdict]:
    events = need(kernel_facts(view).log, "the kernel log")
    well = {*listed_gpus(view), *_held(view)}
    failed: dict[str, list[KernelEvent]] = {}
    for event in events:
        address = known(event.pci_address)
        told = event.kind == "nvrm" and (
            COULD_NOT_START.search(event.text) or is_unsupported(event)
        )
        if told and address and address not in well:
            failed.setdefault(address, []).append(event)
    for address, lines in failed.items():
        unknown = [event for event in lines if is_unsupported(event)]
        if unknown:
            yield from unsupported(view, unknown)
            continue
        yield _not_started(view, address, lines, _firmware(view, address, events))
    if not failed:
        yield Passed("no failure since boot")


def _held(view: SnapshotView) -> set[str]:
    """Addresses of the GPUs that the driver does not get, since they are held for virtual machines."""
    try:
        return {gpu.address for gpu in pci_gpus(view) if held_for_guests(gpu)}
    except CannotJudge:
        return set()


def _firmware(view: SnapshotView, address: str, events: list[KernelEvent]) -> list[KernelEvent]:
    """The lines which say that this GPU's own firmware (GSP) did not start."""
    return [
        event
        for event in events
        if event.kind == "gsp" and address_of_event(view, event, events) in (address, None)
    ]


def _not_started(
    view: SnapshotView, address: str, events: list[KernelEvent], firmware: list[KernelEvent]
) -> Finding:
    no_room = any(BAD_REGION in event.text for event in events)
    if firmware and not no_room:
        return _firmware_failed(view, address, [*firmware[-2:], *events[-1:]])
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
            [f"cat /sys/bus/pci/devices/{word(address)}/resource"],
        )
        if no_room
        else Remedy(
            "Power the machine off and on; where it stays so, try another version of the driver, then"
            " another slot, then the vendor.",
            ["sudo dmesg | grep -iE 'nvrm|xid'", REPORT, "sudo poweroff"],
        ),
    )


def _firmware_failed(view: SnapshotView, address: str, events: list[KernelEvent]) -> Finding:
    return Finding(
        "fail",
        "The driver could not start this GPU, since the firmware that it loads into it (GSP) did not come up:"
        " nothing can use it.",
        subjects=about_device_at("gpu", address),
        evidence=[event_evidence(view, event) for event in events],
        remedy=Remedy(
            "Power the machine off and on, since what is left of a failed start survives a reboot; where it"
            " stays so, install another version of the driver (newer first: several releases fix it for new"
            " GPUs), and bring the machine's firmware up to date.",
            [
                "sudo dmesg | grep -iE 'nvrm|gsp|xid'",
                *on_system(view, "update-driver"),
                REPORT,
                "sudo poweroff",
            ],
        ),
    )
