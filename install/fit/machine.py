"""What fitting needs to know of a machine, read from its Snapshot once for all releases."""

from __future__ import annotations

import re

from packaging.version import Version

from ...checks.driver_state import driver_version, on_windows, on_wsl
from ...checks.visible import VisibleDevice, devices
from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.host import Host
from ...facts.missing import CannotJudge
from ...facts.snapshot import Document, Snapshot
from ...facts.view import SnapshotView
from .models import FitMachine, GpuState


def machine_of(snapshot: Snapshot) -> FitMachine:
    view = SnapshotView(snapshot)
    probe = snapshot.machine.host
    host = Host() if probe is None or probe.facts is None else probe.facts
    listed, cards = _listed(view), _cards(view)
    driver = known(driver_version(view)[0]) or ""
    number = re.match(r"\d+(\.\d+)*", driver)
    return FitMachine(
        architecture=known(host.architecture) or "",
        libc=known(host.libc) or "",
        glibc=known(host.glibc) or "",
        cpu_flags=known(host.cpu_flags),
        gpu_state=_state(listed, cards, driver),
        on_bus=cards or 0,
        gpus=_different(listed or []),
        names=list(dict.fromkeys(device.name for device in listed or [])),
        driver=driver,
        driver_version=Version(number[0]) if number else None,
        driver_cuda=_driver_cuda(snapshot.machine),
        windows_driver=on_wsl(view) or on_windows(view),
    )


def _listed(view: SnapshotView) -> list[VisibleDevice] | None:
    """The GPUs that libcuda or the driver lists; None where neither could be asked."""
    try:
        return devices(view)[0]
    except CannotJudge:
        pass  # none are listed, or in no known order, which does not matter here
    try:
        return [_device(gpu) for gpu in view.gpus]
    except CannotJudge:
        return None


def _device(gpu: Gpu) -> VisibleDevice:
    facts = (gpu.name, gpu.pci_address, gpu.uuid, gpu.compute_capability)
    return VisibleDevice(*(known(fact) or "" for fact in facts))


def _cards(view: SnapshotView) -> int | None:
    """How many GPUs the PCI bus shows; None where it is not known, and in WSL, which shows none."""
    probe = view.machine.pci
    found = None if probe is None or probe.facts is None else known(probe.facts.devices)
    if found is None or on_wsl(view):
        return None
    return sum(device.kind == "gpu" for device in found)


def _state(listed: list[VisibleDevice] | None, cards: int | None, driver: str) -> GpuState:
    if listed:
        return "there"
    if cards:
        return "silent" if driver else "no-driver"
    return "not-known" if cards is None and listed is None else "absent"


def _different(listed: list[VisibleDevice]) -> list[VisibleDevice]:
    """One of each compute capability; where that is not known, of each name."""
    found: dict[str, VisibleDevice] = {}
    for device in listed:
        found.setdefault(device.capability or device.name, device)
    return list(found.values())


def _driver_cuda(machine: Document) -> str:
    """As libcuda says, which a forward-compatibility package may raise, else as NVML or nvidia-smi."""
    if machine.cuda is not None and machine.cuda.facts is not None:
        version = known(machine.cuda.facts.driver_api_version)
        if version:
            return version
    for probe in (machine.nvml, machine.nvidia_smi):
        version = None if probe is None or probe.facts is None else known(probe.facts.cuda_version)
        if version:
            return version
    return ""
