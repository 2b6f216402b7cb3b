"""What the checks on logs share: whose event it is, what came after it, and how to reset that GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..driver_on_disk import build_module
from ..driver_state import HOLDERS, NVRM_LOG, REBOOT, REPORT, branch, driver_version
from ..nvidia_devices import event_evidence, listed_gpus, pci_gpus
from ..on_the_bus import error_counts
from ..reading import (
    CannotJudge,
    Gpu,
    Kernel,
    KernelEvent,
    PciDevice,
    SnapshotView,
    facts_or,
    known,
)
from ..system_commands import on_system
from ..verdicts import DeclaredRow, Finding, Params, Subject, about_device_at, about_gpu, word

_NEAR = 5.0  # seconds: lines that belong together
_MINOR = re.compile(r"(?:minor number|watchdog found GPU) (\d{1,3})\b")
_DRIVERS = ("xid", "nvrm", "gsp", "reset-required", "gpu-lost", "fallen-off-bus", "nvlink")


def gpu_at(view: SnapshotView, address: str | None) -> Gpu | None:
    try:
        gpus = view.gpus
    except CannotJudge:
        return None
    return next((gpu for gpu in gpus if address and known(gpu.pci_address) == address), None)


def subjects_at(view: SnapshotView, address: str | None) -> list[Subject]:
    gpu = gpu_at(view, address)
    return about_gpu(gpu) if gpu is not None else about_device_at("gpu", address)


def address_of_event(
    view: SnapshotView, event: KernelEvent, events: Sequence[KernelEvent]
) -> str | None:
    """The GPU's address: the line's own, else that of the driver's lines beside it, else of the only GPU."""
    own, seconds = known(event.pci_address), known(event.seconds)
    if own is not None:
        return own
    near = {
        known(other.pci_address)
        for other in events
        if other.kind in _DRIVERS
        and seconds is not None
        and abs((known(other.seconds) or -99.0) - seconds) <= _NEAR
    } - {None}
    if near:
        return near.pop() if len(near) == 1 else None
    minor = _MINOR.search(event.text)
    try:
        gpus = {known(gpu.pci_address): known(gpu.minor_number) for gpu in view.gpus}
    except CannotJudge:
        gpus = {}
    numbered = [address for address, number in gpus.items() if minor and str(number) == minor[1]]
    if not gpus:
        gpus = dict.fromkeys(one.address for one in known_gpus(view))
    return next(iter(numbered or (gpus if len(gpus) == 1 else ())), None)


def known_gpus(view: SnapshotView) -> list[PciDevice]:
    """The GPUs on the bus; none where the bus was not read."""
    try:
        return pci_gpus(view)
    except CannotJudge:
        return []


def since_driver_load(events: Sequence[KernelEvent]) -> list[KernelEvent]:
    """The events since the module was last loaded, which starts every GPU anew."""
    loads = [place for place, event in enumerate(events) if event.kind == "driver-load"]
    return list(events[loads[-1] + 1 :]) if loads else list(events)


def found_line(
    view: SnapshotView,
    row: DeclaredRow,
    address: str | None,
    events: Sequence[KernelEvent],
) -> list[Finding]:
    """What these events say by their row; nothing where the GPU's answer counts for more."""
    listed = listed_gpus(view)
    answers = address in listed if address else bool(listed)
    if "reset-required" in row.names and (gpu := gpu_at(view, address)):
        answers = known(gpu.recovery_action) == "None"  # it is reset, or does not need it any more
    cause = row.listed if answers else row.cause
    if cause is None:
        return []
    evidence = [event_evidence(view, event) for event in events[-3:]]
    commands = line_commands(view, row, address)
    values = groups(row, events[-1].text)
    return [cause.found(subjects_at(view, address), evidence, commands=commands, **values)]


def groups(row: DeclaredRow, text: str) -> Params:
    """What the pattern's named groups hold, which the sentence may show."""
    found = re.search(row.pattern, text)
    return {**found.groupdict()} if found else {}


def from_log(view: SnapshotView, rows: Iterable[DeclaredRow]) -> Iterator[Finding]:
    """What the last line of each kind says, of the kernel's log."""
    log = known(facts_or(view.machine.kernel, Kernel).log) or []
    for row in rows:
        last = next((one for one in reversed(log) if one.kind in row.names), None)
        if last is not None and row.fits(last.kind, last.text):
            commands = line_commands(view, row, None)
            yield row.cause.found(evidence=[event_evidence(view, last)], commands=commands)


def line_commands(view: SnapshotView, row: DeclaredRow, address: str | None) -> list[str]:
    """A row's commands as they are on this machine."""
    made = {
        "@report": [REPORT],
        "@holders": [HOLDERS],
        "@log": [NVRM_LOG],
        "@reset": reset_commands("reset", address)[-1:],
        "@reboot": [REBOOT],
        "@off": ["sudo poweroff"],
        "@build-module": build_module(view),
        "@bus-errors": [error_counts(word(one)) for one in _and_its_port(view, address)],
    }
    commands: list[str] = []
    for step in row.steps:
        what, _, rest = step.partition(" ")
        if what == "@system":
            driver = known(driver_version(view)[0]) or ""
            commands += on_system(view, rest, driver=driver, branch=branch(driver))
        elif what == "@boot-options":
            commands += on_system(view, "boot-options", options=rest)
        else:
            commands += made.get(step, [step])
    return commands


def _and_its_port(view: SnapshotView, address: str | None) -> list[str]:
    found = [gpu for gpu in known_gpus(view) if gpu.address == address]
    return [one for gpu in found for one in (gpu.address, known(gpu.slot)) if one]


def reset_commands(action: str, address: str | None) -> list[str]:
    reset = f"sudo nvidia-smi --gpu-reset -i {word(address)}" if address else REBOOT
    last = {"reset": [reset], "reboot": [REBOOT], "off": ["sudo poweroff"], "report": []}
    stop = [HOLDERS] if action in ("reset", "reboot") else []
    return [REPORT, *stop, *last[action]] if action in last else []
