"""The checks on the driver's lines in the kernel log that have no Xid: GPUs not started, other errors."""

from __future__ import annotations

import re

from ...data.kernel import Flavour, flavour_for
from ..declared import declared_causes, declared_rows
from ..driver_on_disk import built_for, installed_version
from ..driver_state import branch, then_reboot
from ..nvidia_devices import (
    device_evidence,
    driver_name,
    event_evidence,
    held_for_guests,
    host_facts,
    is_loaded,
    kernel_facts,
    listed_gpus,
)
from ..on_the_bus import NVIDIA_DEVICES
from ..reading import KernelEvent, PciDevice, SnapshotView, known, need
from ..system_commands import on_system
from ..verdicts import DeclaredRow, Finding, Params, Passed, Verdicts, about_device_at, check, word
from .events import (
    address_of_event,
    found_line,
    groups,
    known_gpus,
    line_commands,
    since_driver_load,
    subjects_at,
)

CAUSE = declared_causes(__name__)

_NOT_SUPPORTED = re.compile(r"Legacy drivers|not supported by the (?:\d[\d.]{2,20} )?NVIDIA")
_RELEASE = re.compile(r"(?:supported by the (?:NVIDIA )?|[Tt]he )(\d{2,4}\.\d[\d.]{0,10}\d)\b")
_LEGACY_BRANCH = re.compile(r"NVIDIA (\d{2,3}\.[\dx.]{1,10}) Legacy")
_DEVICE = re.compile(r"PCI ID: ?(10de:[0-9a-f]{4})", re.I)
_BEFORE_TURING = "proprietary"

_OF_THE_HOST = ("processor-hot",)  # kinds of lines that are about no GPU
_STARTING = declared_rows(__name__, "KRN-013")
RUNNING = declared_rows(__name__, "KRN-014")


@check("KRN-013")
def every_gpu_started(view: SnapshotView) -> Verdicts:
    events = need(kernel_facts(view).log, "the kernel log")
    healthy = {*listed_gpus(view)}
    healthy |= {gpu.address for gpu in known_gpus(view) if held_for_guests(gpu)}
    failed: dict[str, list[KernelEvent]] = {}
    for event in events:
        row = next((one for one in _STARTING if one.fits(event.kind, event.text)), None)
        address = known(event.pci_address) or ""
        if row is not None and not address:
            address = address_of_event(view, event, events) or ""
        unknown = _NOT_SUPPORTED.search(event.text) and not (healthy and not address)
        on_bus = event.kind != "pcie" or address in {gpu.address for gpu in known_gpus(view)}
        logged = unknown or (row is not None and address and on_bus)
        if event.kind in ("nvrm", "pcie", "gsp") and logged and address not in healthy:
            failed.setdefault(address, []).append(event)
    unsuited = {gpu.address: gpu for gpu in known_gpus(view) if _lacks(view, gpu)}
    loose = [one for one in events if one.kind == "gsp" and not address_of_event(view, one, events)]
    for address in sorted({*failed, *unsuited} - healthy):
        lines = [*loose, *failed.get(address, [])]
        unsupported = [event for event in lines if _NOT_SUPPORTED.search(event.text)]
        if unsupported or address in unsuited:
            yield _not_supported(view, address, unsupported[-1:], unsuited.get(address))
        else:
            yield _not_started(view, address, lines, events)
    if not failed and not unsuited:
        yield Passed("no failure since boot")


def _lacks(view: SnapshotView, gpu: PciDevice) -> str:
    """Why no driver of the branch here drives this GPU; "" if it does, holds it or is not known."""
    kernel, row = kernel_facts(view), flavour_for(gpu.device_id)
    there = is_loaded(kernel) or known(kernel.release) in built_for(kernel)
    if row is None or not there or driver_name(gpu) or gpu.address in listed_gpus(view):
        return ""
    return row.lacks(branch(known(kernel.driver_version) or installed_version(kernel)))


def _not_supported(
    view: SnapshotView, address: str, events: list[KernelEvent], gpu: PciDevice | None
) -> Finding:
    kernel, text = kernel_facts(view), events[0].text if events else ""
    patterns = (_RELEASE, _LEGACY_BRANCH, _DEVICE)
    release, legacy, device = (pattern.search(text) for pattern in patterns)
    driver = release[1] if release else known(kernel.driver_version) or installed_version(kernel)
    device_id = device[1].lower() if device else gpu.device_id if gpu else ""
    row = flavour_for(device_id)
    evidence = [event_evidence(view, event) for event in events]
    if gpu is not None:
        evidence += device_evidence(view, gpu, "device_id")
    cause, install = CAUSE["gpu-not-supported"], on_system(view, "update-driver")
    params: Params = {"driver": f"driver {driver}" if driver else "this release of the driver"}
    number = legacy[1].partition(".")[0] if legacy else str((row and row.last_branch) or "")
    if number and number != branch(driver):
        works = [gpu for gpu in known_gpus(view) if gpu.address in listed_gpus(view)]
        others = filter(None, (flavour_for(gpu.device_id) for gpu in works))
        newer = [one.gpus for one in others if one.lacks(number) == "too old"]
        cause, install = (
            CAUSE["needs-legacy-branch"],
            on_system(view, "legacy-driver", branch=number),
        )
        params.update(number=number, of=f" ({row.gpus})" if row else "")
        if newer:
            cause, install = CAUSE["no-common-branch"], []
            params["others"] = ", ".join(dict.fromkeys(newer))
    elif row is not None and row.flavour != _BEFORE_TURING and _too_old(row, driver):
        first = row.first_branch
        params["first"] = f" ({row.gpus}: from {first} on)" if first else ""
        what = f"a driver of branch {first} or newer" if first else "a newer driver"
        params["newer"] = what + (", with the open modules" if row.flavour == "open" else "")
        cause = CAUSE["driver-too-old-for-gpu"]
    elif known(host_facts(view).hypervisor) is not None:
        cause, install = CAUSE["needs-guest-driver"], []
    commands = [NVIDIA_DEVICES, *then_reboot(install)]
    return cause.found(subjects_at(view, address or None), evidence, commands=commands, **params)


def _too_old(row: Flavour, driver: str) -> bool:
    return not (driver and row.first_branch) or int(branch(driver)) < row.first_branch


def _unexplained(
    view: SnapshotView, lines: list[KernelEvent], events: list[KernelEvent], address: str
) -> list[KernelEvent]:
    """What else the driver logged of this GPU, or beside its failure, that no table knows."""
    others = [event for event in events if event.kind == "driver-error"]
    return [one for one in others if address_of_event(view, one, lines) == address]


def _not_started(
    view: SnapshotView, address: str, lines: list[KernelEvent], events: list[KernelEvent]
) -> Finding:
    # The table's order is by how much a line explains: that the GPU was not started comes last.
    row = next(row for row in _STARTING if any(row.fits(one.kind, one.text) for one in lines))
    shown, commands = lines[-3:], line_commands(view, row, address)
    shown = [*_unexplained(view, lines, events, address)[:2], *shown]
    if row.cause.key == "no-room-for-bar":
        commands.insert(0, f"cat /sys/bus/pci/devices/{word(address)}/resource")
    evidence = [event_evidence(view, event) for event in shown]
    return row.cause.found(about_device_at("gpu", address), evidence, commands=commands)


@check("KRN-014")
def no_other_errors(view: SnapshotView) -> Verdicts:
    events = since_driver_load(need(kernel_facts(view).log, "the kernel log"))
    module = known(kernel_facts(view).driver_version)
    lines: dict[tuple[DeclaredRow, str | None], list[KernelEvent]] = {}
    for event in events:
        row = next((one for one in RUNNING if one.fits(event.kind, event.text)), None)
        client = groups(row, event.text).get("client") if row else None
        if row is not None and (client is None or client != module):
            of_gpu = client is None and event.kind not in _OF_THE_HOST
            address = address_of_event(view, event, events) if of_gpu else None
            lines.setdefault((row, address), []).append(event)
    for (row, address), logged in lines.items():
        yield from found_line(view, row, address, logged)
    others = [event.text for event in events if event.kind == "driver-error" and not _known(event)]
    if others:
        yield Passed(
            f"envcheck has no explanation for this line of the log: {others[-1]}", note=True
        )
    else:
        yield Passed("none since the driver was loaded")


def _known(event: KernelEvent) -> bool:
    return any(row.fits(event.kind, event.text) for row in (*_STARTING, *RUNNING))
