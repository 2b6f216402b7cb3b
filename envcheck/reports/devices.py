"""The GPUs and NVSwitches of a machine, how each is attached, and what is wrong with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ..facts.base import known
from ..facts.gpu import Gpu
from ..facts.pci import PciDevice
from ..facts.snapshot import Snapshot
from ..facts.view import or_else, view_of
from ..findings.model import Level
from .machine import facts
from .results import AnyResult

_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}


class DeviceFault(NamedTuple):
    level: Level
    code: str
    words: str


class MachineDevice(msgspec.Struct, frozen=True, kw_only=True):
    """link: "x8 Gen4 (of x16 Gen5)". nvlinks: "17 of 18". note: why the driver does not have it."""

    title: str
    name: str = ""
    address: str = ""
    node: int | None = None
    link: str = ""
    nvlinks: str = ""
    mig: str = ""
    note: str = ""
    faults: list[DeviceFault] = []


_Faults = dict[str, list[DeviceFault]]
_changed = msgspec.structs.replace


def devices(snapshot: Snapshot, results: Iterable[AnyResult]) -> tuple[list[MachineDevice], bool]:
    """The devices; whether the number of GPUs is known."""
    machine = snapshot.machine
    pci, nvml = facts(machine.pci), facts(machine.nvml)
    listed = None if pci is None else known(pci.devices)
    faults = _faults(results)
    on_bus = {one.address: _on_bus(one, faults) for one in listed or [] if one.kind == "gpu"}
    driver_gpus: list[Gpu] | None = or_else(lambda: view_of(snapshot).gpus, None)
    gpus = [_gpu(one, on_bus, faults) for one in driver_gpus or []]
    for lost in nvml.lost if nvml is not None else ():
        address = known(lost.pci_address) or ""
        if not address or address not in {one.address for one in gpus}:
            bare = MachineDevice(title="", address=address, faults=_of(faults, address))
            device = on_bus.get(address, bare)
            gpus.append(_changed(device, title=f"GPU {lost.index}", note=f"lost: {lost.error}"))
    note = "not in the driver's list" if driver_gpus is not None else ""
    listed_gpus = {one.address for one in gpus}
    gpus += [_changed(on_bus[one], note=note) for one in on_bus if one not in listed_gpus]
    switches = [
        _changed(_on_bus(one, faults), title="NVSwitch")
        for one in listed or []
        if one.kind == "nvswitch"
    ]
    return [*gpus, *switches], driver_gpus is not None or listed is not None


def _faults(results: Iterable[AnyResult]) -> _Faults:
    """What findings say of devices, by address, else UUID."""
    found: _Faults = defaultdict(list)
    for result in results:
        for finding in result.findings if not result.consequence_of else ():
            fault = DeviceFault(finding.level, result.code, finding.headline or finding.message)
            for subject in finding.subjects:
                key = subject.address or subject.uuid
                if key and fault not in found[key]:
                    found[key].append(fault)
    return found


def _of(faults: _Faults, *keys: str) -> list[DeviceFault]:
    found = [fault for key in keys if key for fault in faults.get(key, ())]
    return sorted(found, key=lambda fault: fault.level != "fail")


def _on_bus(device: PciDevice, faults: _Faults) -> MachineDevice:
    """What the PCI bus knows of a GPU or NVSwitch."""
    widths = known(device.max_link_width), known(device.slot_max_link_width)
    rates = known(device.max_link_gts), known(device.slot_max_link_gts)
    width = min(filter(None, widths), default=0)
    rate = min(filter(None, rates), default=0.0)
    return MachineDevice(
        title="GPU",
        name=known(device.name) or f"NVIDIA {device.device_id}",
        address=device.address,
        link=_link(known(device.link_width), known(device.link_gts), width, rate),
        node=known(device.numa_node),
        faults=_of(faults, device.address),
    )


def _link(width: int | None, rate: float | None, most: int | None, fastest: float | None) -> str:
    """Lanes and generation as they are, and as they could be where that is more."""
    generation, newest = _GENERATIONS.get(rate or 0.0), _GENERATIONS.get(fastest or 0.0)
    pairs = ((width, most), (generation, newest))
    less = any(have and could and have < could for have, could in pairs)
    now, possible = (
        " ".join(f"{sign}{one}" for sign, one in (("x", lanes), ("Gen", number)) if one)
        for lanes, number in ((width, generation), (most, newest))
    )
    return f"{now} (of {possible})" if less else now


def _gpu(gpu: Gpu, on_bus: dict[str, MachineDevice], faults: _Faults) -> MachineDevice:
    index, address, links = known(gpu.index), known(gpu.pci_address) or "", known(gpu.nvlinks)
    active = sum(known(one.active) is True for one in links or [])
    instances = known(gpu.mig_instances) or []
    return _changed(
        on_bus.get(address, MachineDevice(title="", address=address)),
        title="GPU" if index is None else f"GPU {index}",
        name=known(gpu.name) or "NVIDIA GPU of unknown name",
        nvlinks=f"{active} of {len(links)}" if links else "",
        mig=str(len(instances) or "on, none") if known(gpu.mig_enabled) else "",
        faults=_of(faults, address, known(gpu.uuid) or ""),
    )
