"""Checks on what the driver reports in the kernel log: Xids, and GPUs that it could not start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.kernel import Xid, sxids, xids
from ..driver_state import NVRM_LOG, REBOOT, REPORT
from ..gpus import DRAIN_P2P, drain_p2p
from ..nvidia_devices import event_evidence, held_for_guests, kernel_facts, listed_gpus, pci_gpus
from ..reading import CannotJudge, KernelEvent, SnapshotView, known, need
from ..system_commands import on_system
from ..verdicts import (
    Cause,
    Finding,
    Level,
    Passed,
    Remedy,
    Verdicts,
    about_device_at,
    check,
    fail,
    warn,
    word,
)
from .events import address_of_event, gpu_at, reset_commands, subjects_at
from .unsupported import CAUSES as UNSUPPORTED
from .unsupported import is_unsupported, unsupported

_FALLEN = 79  # PCI-004 reports it
_ADVICE = 154  # what the driver wants done with a GPU
# "Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
_CHANGED = re.compile(
    r"recovery action changed from [^()]{0,40}\([^()]{0,40}\) to [^()]{0,40}\(([^()]{1,40})\)"
)
_NONFATAL = re.compile(r"\bNon-?fatal\b", re.I)
_BAD_REGION = "PCI I/O region"
_COULD_NOT_START = re.compile(rf"RmInitAdapter failed|{_BAD_REGION}|probe (of|with driver)")
_MANAGER = "journalctl -u nvidia-fabricmanager -n 50"
_LEVELS: tuple[Level, ...] = ("fail", "warn")

_XIDS: dict[tuple[int, str], Cause] = {
    (xid.code, level): Cause(
        f"xid-{xid.code}" + ("-nonfatal" if level == xid.nonfatal_severity else ""),
        level,
        headline=f"has Xid {xid.code} in the kernel log",
        sentence=f"Xid {xid.code}{{times}}: {xid.meaning}.",
        remedy=xid.remedy,
        source=xid.source,
    )
    for xid in xids().values()
    for level in _LEVELS
    if level in (xid.severity, xid.nonfatal_severity)
}
_UNKNOWN = warn(
    "unknown-xid",
    "has Xid {xid} in the kernel log",
    "Xid {xid}{times}, which is not in envcheck's table.",
    "Look it up in NVIDIA's Xid catalogue; the report holds what the driver saw.",
    REPORT,
)
_RECOVERY = fail(
    "recovery-wanted",
    "asks for recovery ({action})",
    "The driver asks for recovery of this GPU ({action}): until then its results are not reliable.",
    "Do what it asks for, once no process uses the GPU.",
)
_FATAL_SXID = fail(
    "sxid-fatal",
    "has a fatal NVSwitch error in the kernel log",
    "An NVSwitch reported a fatal error (SXid {sxid}{meaning}): transfers between GPUs fail, and"
    " jobs on them hang or die.",
    "Reboot; where it comes back, have the baseboard examined.",
    REPORT,
    _MANAGER,
    REBOOT,
)
_SXID = warn(
    "sxid-nonfatal",
    "has an NVSwitch error in the kernel log",
    "An NVSwitch reported an error (SXid {sxid}{meaning}): transfers between GPUs may suffer.",
)


@check(
    "KRN-008",
    title="No serious GPU errors in the kernel log",
    causes=[*_XIDS.values(), _UNKNOWN, _RECOVERY, _FATAL_SXID, _SXID],
    about="The driver logs each GPU error with a number, the Xid; NVSwitches log SXids. Some call for a"
    " reset or a new board (uncorrectable memory errors, a system processor that does not answer), some are"
    " to be watched, and some (13, 31, 43, 45) are mostly faults of an application and are only mentioned.",
    sources=["NVIDIA Xid catalog, docs.nvidia.com/deploy/xid-errors"],
    follows=("PCI-001", "PCI-004", "GPU-001"),
)
def xids_in_log(view: SnapshotView) -> Verdicts:
    events = need(kernel_facts(view).log, "the kernel log")
    mentioned = []
    advice: dict[str | None, KernelEvent] = {}  # the last of each GPU
    loaded, recovered = _resets(events)
    for place, event in enumerate(events):
        code, address = known(event.xid), known(event.pci_address)
        if event.kind == "sxid":
            found = _sxid(view, event, code or 0)
            mentioned += [] if found else [f"SXid {code} (not fatal)"]
        elif event.kind == "xid" and code is not None and code != _FALLEN:
            xid = xids().get(code)
            # Memory that went bad stays so until a reset, and the GPU's own facts show it.
            lasting = xid is not None and bool(xid.shown_by)
            if place < recovered.get(address, -1) or (place < loaded and not lasting):
                mentioned.append(f"Xid {code} before the last reset")
                continue
            if code == _ADVICE:
                advice[address] = event
            found = _xid(view, event, code, xid)
            mentioned += [] if found or xid is None else [f"Xid {code} ({xid.meaning})"]
        else:
            continue
        if found is not None:
            yield found
    for event in advice.values():
        yield from _recovery(view, event)
    yield Passed("; ".join(dict.fromkeys(mentioned)) or "none since boot")


def _resets(events: list[KernelEvent]) -> tuple[int, dict[str | None, int]]:
    """The place of the driver's last load, and of each GPU's last "needs no recovery any more"."""
    loaded, recovered = -1, {}
    for place, event in enumerate(events):
        wanted = _CHANGED.search(event.text) if known(event.xid) == _ADVICE else None
        if event.kind == "driver-load":
            loaded = place
        elif wanted is not None and wanted[1].lower() == "none":
            recovered[known(event.pci_address)] = place
    return loaded, recovered


def _times(event: KernelEvent) -> str:
    return f", {event.count} times" if event.count > 1 else ""


def _xid(view: SnapshotView, event: KernelEvent, code: int, xid: Xid | None) -> Finding | None:
    address = known(event.pci_address)
    severity = _severity(view, xid, event) if xid else ""
    cause = _XIDS.get((code, severity)) if xid else _UNKNOWN
    if cause is None:
        return None
    return cause.found(
        subjects_at(view, address),
        [event_evidence(view, event)],
        commands=reset_commands(xid.action, address) if xid else None,
        xid=code,
        times=_times(event),
    )


def _severity(view: SnapshotView, xid: Xid, event: KernelEvent) -> str:
    if xid.nonfatal_severity and _NONFATAL.search(event.text):
        return xid.nonfatal_severity
    gpu = gpu_at(view, known(event.pci_address))
    if gpu is None:
        return xid.severity
    pending = [known(getattr(gpu, name)) for name in xid.settled_by]
    settled = False in pending and True not in pending
    shown = any(known(getattr(gpu, name)) for name in xid.shown_by)
    return "info" if settled or shown else xid.severity


def _recovery(view: SnapshotView, event: KernelEvent) -> Iterator[Finding]:
    """What the driver's log wants done, if the GPU itself does not report it."""
    address = known(event.pci_address)
    gpu, wanted = gpu_at(view, address), _CHANGED.search(event.text)
    if wanted is None or wanted[1].lower() == "none":
        return
    if gpu is not None and known(gpu.recovery_action) is not None:
        return
    words = wanted[1].strip().lower()
    yield _RECOVERY.found(
        subjects_at(view, address),
        [event_evidence(view, event)],
        advice=drain_p2p() if words == DRAIN_P2P else None,
        commands=reset_commands("reboot" if "reboot" in words else "reset", address),
        action=wanted[1],
    )


def _sxid(view: SnapshotView, event: KernelEvent, code: int) -> Finding | None:
    """The finding on an NVSwitch's error; None for one that needs nothing."""
    row = sxids().get(code)
    fatal = not _NONFATAL.search(event.text)
    if not fatal and row is None:
        return None
    advice = None
    if row is not None:
        last = {
            "cool": "nvidia-smi -q -d TEMPERATURE",
            "reset": "sudo nvidia-smi --gpu-reset",
        }.get(row.action, REBOOT)
        advice = Remedy(row.remedy, [REPORT, _MANAGER, last])
    return (_FATAL_SXID if fatal else _SXID).found(
        about_device_at("nvswitch", known(event.pci_address)),
        [event_evidence(view, event)],
        advice=advice,
        sxid=code,
        meaning=f": {row.meaning}" if row else "",
    )


_CANNOT_START = "The driver could not start this GPU"
NO_ROOM = fail(
    "no-room-for-bar",
    "was not started by the driver",
    f"{_CANNOT_START}, since the firmware has given it no room for its memory: nothing can use it.",
    "Switch on 'Above 4G decoding' (64-bit BARs) in the firmware; in a virtual machine, give it"
    " 64-bit memory space for devices; else boot with pci=realloc.",
)
FIRMWARE = fail(
    "gsp-not-started",
    "was not started by the driver (GSP)",
    f"{_CANNOT_START}, since the firmware that it loads into it (GSP) did not come up: nothing can"
    " use it.",
    "Power the machine off and on, since a reboot does not clear a failed start; where it stays so,"
    " install another version of the driver (newer first: several releases fix it for new GPUs), and bring"
    " the machine's firmware up to date.",
)
NOT_STARTED = fail(
    "gpu-not-started",
    "was not started by the driver",
    f"{_CANNOT_START}, and says so: nothing can use it.",
    "Power the machine off and on; where it stays so, try another version of the driver, then"
    " another slot, then the vendor.",
    NVRM_LOG,
    REPORT,
    "sudo poweroff",
)


@check(
    "KRN-013",
    title="The driver started every GPU",
    causes=[NO_ROOM, FIRMWARE, NOT_STARTED, *UNSUPPORTED],
    about="The driver may hold a GPU and yet not be able to start it: its firmware does not answer, the"
    " machine's firmware has given it no room for its memory (BAR1 is 0M), or this release of the driver"
    " does not know the GPU. nvidia-smi then lists fewer GPUs than there are, or none. Judged by the"
    " driver's own lines in the kernel log; a GPU that the driver lists now has been started since.",
    sources=["NVIDIA/open-gpu-kernel-modules#789, #876, #1230; NVIDIA/gpu-operator#492"],
    follows=("PCI-001", "PCI-002", "PCI-004", "KRN-002", "KRN-009", "DRV-002"),
)
def every_gpu_started(view: SnapshotView) -> Verdicts:
    events = need(kernel_facts(view).log, "the kernel log")
    healthy = {*listed_gpus(view), *_held(view)}
    failed: dict[str, list[KernelEvent]] = {}
    for event in events:
        address = known(event.pci_address)
        logged = event.kind == "nvrm" and (
            _COULD_NOT_START.search(event.text) or is_unsupported(event)
        )
        if logged and address and address not in healthy:
            failed.setdefault(address, []).append(event)
    for address, lines in failed.items():
        unknown = [event for event in lines if is_unsupported(event)]
        if unknown:
            yield from unsupported(view, unknown)
        else:
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
    cause, lines, commands = NOT_STARTED, events[-3:], None
    if any(_BAD_REGION in event.text for event in events):
        cause, commands = NO_ROOM, [f"cat /sys/bus/pci/devices/{word(address)}/resource"]
    elif firmware:
        cause, lines = FIRMWARE, [*firmware[-2:], *events[-1:]]
        log = "sudo dmesg | grep -iE 'nvrm|gsp|xid'"
        commands = [log, *on_system(view, "update-driver"), REPORT, "sudo poweroff"]
    return cause.found(
        about_device_at("gpu", address),
        [event_evidence(view, event) for event in lines],
        commands=commands,
    )
