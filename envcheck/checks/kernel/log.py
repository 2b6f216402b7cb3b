"""The check on Xids and SXids: the errors of GPUs and NVSwitches that the driver logs with a number."""

from __future__ import annotations

import re

from msgspec.structs import replace

from ...data.kernel import NvlinkXid, Xid, nvlink_xid, steps, xids
from ..declared import declared_causes, declared_rows
from ..driver_state import REBOOT, REPORT
from ..gpus import REPLACE, recovery
from ..nvidia_devices import event_evidence, kernel_facts, listed_gpus
from ..reading import KernelEvent, SnapshotView, known, need
from ..system_commands import on_system
from ..verdicts import Cause, Finding, Passed, Remedy, Verdicts, about_device_at, check, word
from .events import gpu_at, reset_commands, subjects_at

CAUSE = declared_causes(__name__)

_GSP = (119, 120)
_GSP_OFF = (
    "echo 'options nvidia NVreg_EnableGpuFirmware=0' | sudo tee /etc/modprobe.d/nvidia-gsp.conf"
    "  # if it comes back"
)
_FALLEN = 79  # PCI-004 reports it
_ADVICE = 154  # what the driver wants done with a GPU
# "Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
_CHANGED = re.compile(
    r"recovery action changed from [^()]{0,40}\([^()]{0,40}\) to [^()]{0,40}\(([^()]{1,40})\)"
)
_NONFATAL = re.compile(r"\bNon-?fatal\b|Severity 0", re.I)


def _in_catalog(xid: Xid) -> str:
    """What the catalog names in its own words, by which operators look it up."""
    words = list(dict.fromkeys(filter(None, (xid.immediate, xid.investigate))))
    return f" NVIDIA's catalog: {', then '.join(words)}." if words else ""


_XIDS: dict[tuple[int, str], Cause] = {
    (xid.code, level): Cause(
        f"xid-{xid.code}" + ("-nonfatal" if level == xid.nonfatal_severity else ""),
        "fail" if level == "fail" else "warn",
        headline=f"has Xid {xid.code} in the kernel log",
        sentence=f"Xid {xid.code}{{times}}: {xid.meaning}.",
        remedy=xid.remedy + _in_catalog(xid),
        source=xid.source,
    )
    for xid in xids().values()
    for level in ("fail", "warn")
    if level in (xid.severity, xid.nonfatal_severity)
}


_HANGS = declared_rows(
    __name__
)  # SXids after which jobs hang, though the driver calls them not fatal
_SAME_MOMENT = 5.0  # seconds: what an NVSwitch and a GPU then log is of one fault
_NOT_REMAPPED = CAUSE["memory-not-replaceable"]


@check("KRN-008", causes=_XIDS.values())
def xids_in_log(view: SnapshotView) -> Verdicts:
    events = need(kernel_facts(view).log, "the kernel log")
    mentioned: list[str] = []
    over, before = _before_reset(events)
    switches: dict[tuple[str | None, int | None], list[KernelEvent]] = {}
    others: list[tuple[KernelEvent, Finding]] = []
    stories: dict[str | None, list[tuple[Xid, KernelEvent]]] = {}
    advice: dict[str | None, KernelEvent] = {}  # the last of each GPU
    for place, event in enumerate(events):
        code, address = known(event.xid), known(event.pci_address)
        hangs = any(row.fits(event.kind, event.text) for row in _HANGS)
        if event.kind == "sxid" and not hangs and _NONFATAL.search(event.text):
            mentioned.append(f"SXid {code} (not fatal)")
        elif event.kind == "sxid":
            switches.setdefault((address, code), []).append(event)
        if event.kind != "xid" or code is None or code == _FALLEN:
            continue
        if place in over:
            mentioned.append(f"Xid {code} before the last reset")
            continue
        xid = xids().get(code)
        if code == _ADVICE:
            advice[address] = event
        found = _on_one_gpu(view, event, xid, events) or _xid(
            view, event, code, xid, again=(address, code) in before
        )
        if found and xid and xid.story:
            stories.setdefault(address, []).append((xid, event))
        elif found:
            others.append((event, found))
        elif xid is not None:
            mentioned.append(f"Xid {code} ({xid.meaning})")
    others = [(event, one) for event, one in others if known(event.pci_address) not in stories]
    for address, story in stories.items():
        memory = _memory(view, address, story, before)
        wanted = [event_evidence(view, advice.pop(address))] if address in advice else []
        yield replace(memory, evidence=[*memory.evidence, *wanted])
    fatal = []
    for (address, code), lines in switches.items():
        worst = [line for line in lines if not _NONFATAL.search(line.text)]
        fatal += worst
        cause, beside = (
            CAUSE["sxid-fatal"] if worst else CAUSE["sxid-not-fatal"],
            [e for e, _ in others if _beside(e, worst)],
        )
        evidence = [event_evidence(view, line) for line in [*(worst or lines)[-1:], *beside[:3]]]
        gpus = [one for event in beside for one in subjects_at(view, known(event.pci_address))]
        subjects = list(dict.fromkeys([*about_device_at("nvswitch", address), *gpus]))
        yield cause.found(subjects, evidence, sxid=code)
    yield from (found for event, found in others if not _beside(event, fatal))
    for event in advice.values():
        yield from _recovery(view, event)
    yield Passed("; ".join(dict.fromkeys(mentioned)) or "none since boot")


def _beside(event: KernelEvent, others: list[KernelEvent]) -> bool:
    """Whether it was logged in the same moment as one of the others."""
    times = [known(one.seconds) for one in others]
    own = known(event.seconds)
    return own is not None and any(
        one is not None and abs(own - one) <= _SAME_MOMENT for one in times
    )


def _before_reset(events: list[KernelEvent]) -> tuple[set[int], set[tuple[str | None, int | None]]]:
    """Xids from before the driver's last load or the GPU's recovery: their places, and each GPU and Xid."""
    loaded, recovered = -1, {}
    for place, event in enumerate(events):
        wanted = _CHANGED.search(event.text) if known(event.xid) == _ADVICE else None
        if event.kind == "driver-load":
            loaded = place
        elif wanted is not None and wanted[1].lower() == "none":
            recovered[known(event.pci_address)] = place
    over = set()
    for place, event in enumerate(events):
        xid = xids().get(known(event.xid) or 0)
        # Memory that went bad stays so until a reset, and the GPU's own facts show it.
        lasting = xid is not None and bool(xid.shown_by)
        if place < recovered.get(known(event.pci_address), -1) or (place < loaded and not lasting):
            over.add(place)
    return over, {(known(events[one].pci_address), known(events[one].xid)) for one in over}


def _xid(
    view: SnapshotView, event: KernelEvent, code: int, xid: Xid | None, again: bool = False
) -> Finding | None:
    address, row = known(event.pci_address), nvlink_xid(event.text)
    cause = _XIDS.get((code, _severity(view, xid, event, row))) if xid else CAUSE["unknown-xid"]
    if cause is None:
        return None
    evidence, commands, advice = [event_evidence(view, event)], None, None
    if row is not None:
        action = "reset" if row.immediate == "RESET_GPU" else "report"
        advice = Remedy(steps(row.immediate, row.investigate), reset_commands(action, address))
    elif xid is not None:
        commands = reset_commands(xid.action, address)
        if code in _GSP and known(kernel_facts(view).driver_flavour) == "proprietary":
            commands += [_GSP_OFF, *on_system(view, "initramfs"), REBOOT]
        again = again and xid.action in ("reset", "reboot")
    if again and row is None:
        advice = Remedy(REPLACE, _replace(address))
    times = f", {event.count} times" if event.count > 1 else ""
    return cause.found(
        subjects_at(view, address),
        evidence,
        commands=commands,
        advice=advice,
        xid=code,
        times=times + (", again after a reset" if again else ""),
    )


def _replace(address: str | None) -> list[str]:
    return [REPORT, f"nvidia-smi -q -i {word(address)}"] if address else [REPORT, "nvidia-smi -q"]


def _severity(view: SnapshotView, xid: Xid, event: KernelEvent, row: NvlinkXid | None) -> str:
    if row is not None:
        quiet = "info" if row.investigate == "IGNORE" else "warn"
        return {"RESET_GPU": "fail", "IGNORE": quiet}.get(row.immediate, "warn")
    if xid.nonfatal_severity and _NONFATAL.search(event.text):
        return xid.nonfatal_severity
    gpu = gpu_at(view, known(event.pci_address))
    if gpu is None:
        return xid.severity
    pending = [known(getattr(gpu, name)) for name in xid.settled_by]
    settled = False in pending and True not in pending
    shown = any(known(getattr(gpu, name)) for name in xid.shown_by)
    return "info" if settled or shown else xid.severity


def _memory(
    view: SnapshotView,
    address: str | None,
    story: list[tuple[Xid, KernelEvent]],
    before: set[tuple[str | None, int | None]],
) -> Finding:
    """One finding for all that the driver logs about one GPU's bad memory."""
    codes = sorted({xid.code for xid, _ in story})
    if len(codes) == 1:
        xid, event = story[-1]
        found = _xid(view, event, xid.code, xid, again=(address, xid.code) in before)
        assert found is not None  # it was, in the first look
        return found
    cause = _NOT_REMAPPED if 64 in codes else CAUSE["memory-not-contained"]
    if 94 in codes and not {64, 95, 140} & set(codes):
        cause = CAUSE["memory-contained"]
    commands = _replace(address) if cause is _NOT_REMAPPED else reset_commands("reset", address)
    evidence = [event_evidence(view, event) for _, event in story[-6:]]
    words = ", ".join(f"Xid {code}" for code in codes)
    return cause.found(subjects_at(view, address), evidence, commands=commands, xids=words)


def _on_one_gpu(
    view: SnapshotView, event: KernelEvent, xid: Xid | None, events: list[KernelEvent]
) -> Finding | None:
    """What an application mostly does is the GPU's own where it comes again and again on that one alone."""
    if xid is None or not xid.repeats or event.count < xid.repeats:
        return None
    with_it = {known(other.pci_address) for other in events if known(other.xid) == xid.code}
    gpus = listed_gpus(view)
    if len(with_it) > 1 or len(gpus) < 2:
        return None
    return CAUSE["xid-on-one-gpu"].found(
        subjects_at(view, known(event.pci_address)),
        [event_evidence(view, event)],
        xid=xid.code,
        times=event.count,
        gpus=len(gpus),
        meaning=xid.meaning,
    )


def _recovery(view: SnapshotView, event: KernelEvent) -> Verdicts:
    """What the driver's log wants done, if the GPU itself does not report it."""
    address = known(event.pci_address)
    gpu, wanted = gpu_at(view, address), _CHANGED.search(event.text)
    action = wanted[1].strip().lower() if wanted else "none"
    if action == "none" or (gpu is not None and known(gpu.recovery_action) is not None):
        return
    yield CAUSE["recovery-wanted"].found(
        subjects_at(view, address),
        [event_evidence(view, event)],
        advice=recovery(action, address),
        action=wanted[1] if wanted else "",
    )
