"""The check on Xids and SXids: the errors of GPUs and NVSwitches that the driver logs with a number."""

from __future__ import annotations

import re

from ...data.kernel import Xid, xids
from ..driver_state import REBOOT, REPORT
from ..gpus import recovery
from ..nvidia_devices import event_evidence, kernel_facts
from ..reading import KernelEvent, SnapshotView, known, need
from ..verdicts import Cause, Finding, Passed, Verdicts, about_device_at, check, fail, warn
from .events import gpu_at, reset_commands, subjects_at

_FALLEN = 79  # PCI-004 reports it
_ADVICE = 154  # what the driver wants done with a GPU
# "Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
_CHANGED = re.compile(
    r"recovery action changed from [^()]{0,40}\([^()]{0,40}\) to [^()]{0,40}\(([^()]{1,40})\)"
)
_NONFATAL = re.compile(r"\bNon-?fatal\b", re.I)

_XIDS: dict[tuple[int, str], Cause] = {
    (xid.code, level): Cause(
        f"xid-{xid.code}" + ("-nonfatal" if level == xid.nonfatal_severity else ""),
        "fail" if level == "fail" else "warn",
        headline=f"has Xid {xid.code} in the kernel log",
        sentence=f"Xid {xid.code}{{times}}: {xid.meaning}.",
        remedy=xid.remedy,
        source=xid.source,
    )
    for xid in xids().values()
    for level in ("fail", "warn")
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
)
_FATAL_SXID = fail(
    "sxid-fatal",
    "has a fatal NVSwitch error in the kernel log",
    "An NVSwitch reported a fatal error (SXid {sxid}): jobs on several GPUs hang or die.",
    "Reboot; if it comes back, have the baseboard examined.",
    REPORT,
    "journalctl -u nvidia-fabricmanager -n 50",
    REBOOT,
)


@check(
    "KRN-008",
    title="No serious GPU errors in the kernel log",
    causes=[*_XIDS.values(), _UNKNOWN, _RECOVERY, _FATAL_SXID],
    about="The driver logs each GPU error with a number, the Xid; NVSwitches log SXids. Judged by a table of"
    " codes after NVIDIA's catalog, over the log since the driver was last loaded.",
    sources=[
        "NVIDIA Xid catalog, docs.nvidia.com/deploy/xid-errors; fabric manager user guide, SXids"
    ],
    follows=("PCI-001", "PCI-004", "GPU-001"),
)
def xids_in_log(view: SnapshotView) -> Verdicts:
    events = need(kernel_facts(view).log, "the kernel log")
    mentioned = []
    advice: dict[str | None, KernelEvent] = {}  # the last of each GPU
    loaded, recovered = _resets(events)
    for place, event in enumerate(events):
        code, address = known(event.xid), known(event.pci_address)
        found = None
        if event.kind == "sxid" and _NONFATAL.search(event.text):
            mentioned.append(f"SXid {code} (not fatal)")
        elif event.kind == "sxid":
            switch = about_device_at("nvswitch", address)
            found = _FATAL_SXID.found(switch, [event_evidence(view, event)], sxid=code)
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


def _xid(view: SnapshotView, event: KernelEvent, code: int, xid: Xid | None) -> Finding | None:
    address = known(event.pci_address)
    cause = _XIDS.get((code, _severity(view, xid, event))) if xid else _UNKNOWN
    if cause is None:
        return None
    return cause.found(
        subjects_at(view, address),
        [event_evidence(view, event)],
        commands=reset_commands(xid.action, address) if xid else None,
        xid=code,
        times=f", {event.count} times" if event.count > 1 else "",
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


def _recovery(view: SnapshotView, event: KernelEvent) -> Verdicts:
    """What the driver's log wants done, if the GPU itself does not report it."""
    address = known(event.pci_address)
    gpu, wanted = gpu_at(view, address), _CHANGED.search(event.text)
    action = wanted[1].strip().lower() if wanted else "none"
    if action == "none" or (gpu is not None and known(gpu.recovery_action) is not None):
        return
    yield _RECOVERY.found(
        subjects_at(view, address),
        [event_evidence(view, event)],
        advice=recovery(action, address),
        action=wanted[1] if wanted else "",
    )
