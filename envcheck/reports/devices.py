"""The GPUs, NVSwitches and network adapters of a machine, what each is attached to, what is wrong with it.

What the Snapshot does not have is omitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from ..facts.base import known
from ..facts.gpu import Gpu
from ..facts.missing import CannotJudge
from ..facts.network import Network
from ..facts.pci import PciDevice
from ..facts.snapshot import Snapshot
from ..facts.view import view_of
from ..findings.model import Level
from .machine import facts
from .results import AnyResult

_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}
_PORTS = 2  # shown of an adapter
_INTERFACES = 4  # shown of a machine without RDMA


class DeviceFault(NamedTuple):
    level: Level
    code: str
    words: str


class MachineDevice(msgspec.Struct, frozen=True, kw_only=True):
    """link: "x8 Gen4 (of x16 Gen5)". nvlinks: "17 of 18". gone: the driver lost it, or does not list it."""

    title: str
    name: str = ""
    address: str = ""
    node: int | None = None
    link: str = ""
    nvlinks: str = ""
    mig: str = ""
    notes: list[str] = []
    faults: list[DeviceFault] = []
    gone: bool = False


_Faults = dict[str, list[DeviceFault]]
_changed = msgspec.structs.replace


def devices(snapshot: Snapshot, results: Iterable[AnyResult]) -> tuple[list[MachineDevice], bool]:
    """The devices; whether the number of GPUs is known."""
    machine = snapshot.machine
    pci, network, nvml = facts(machine.pci), facts(machine.network), facts(machine.nvml)
    listed = None if pci is None else known(pci.devices)
    on_bus = {device.address: device for device in listed or []}
    faults = _faults(results)
    try:
        driver_gpus: list[Gpu] | None = view_of(snapshot).gpus
    except CannotJudge:
        driver_gpus = None
    gpus = [
        _gpu(gpu, on_bus.get(known(gpu.pci_address) or ""), faults) for gpu in driver_gpus or []
    ]
    for lost in nvml.lost if nvml is not None else ():
        address = known(lost.pci_address) or ""
        if not address or address not in {gpu.address for gpu in gpus}:
            on = _on_bus(on_bus.get(address), address, faults)
            notes = [f"lost: {lost.error}"]
            gpus.append(_changed(on, title=f"GPU {lost.index}", notes=notes, gone=True))
    for device in on_bus.values():
        if device.kind == "gpu" and device.address not in {gpu.address for gpu in gpus}:
            gpus.append(_unlisted(device, faults, driver_gpus is not None))
    switches = [
        _changed(_on_bus(device, device.address, faults), title="NVSwitch")
        for device in on_bus.values()
        if device.kind == "nvswitch"
    ]
    adapters = _adapters(network, faults) if network is not None else ()
    return [*gpus, *switches, *adapters], driver_gpus is not None or listed is not None


def _faults(results: Iterable[AnyResult]) -> _Faults:
    """What findings say of devices, by address, else UUID, else name."""
    found: _Faults = defaultdict(list)
    for result in results:
        for finding in result.findings if not result.consequence_of else ():
            fault = DeviceFault(finding.level, result.code, finding.headline or finding.message)
            for subject in finding.subjects:
                name = subject.name if subject.kind == "pci-device" else ""
                key = subject.address or subject.uuid or name
                if key and fault not in found[key]:
                    found[key].append(fault)
    return found


def _of(faults: _Faults, *keys: str) -> list[DeviceFault]:
    found = [fault for key in keys if key for fault in faults.get(key, ())]
    return sorted(found, key=lambda fault: fault.level != "fail")


def _on_bus(device: PciDevice | None, address: str, faults: _Faults) -> MachineDevice:
    """What the PCI bus knows of a GPU or NVSwitch; nothing for None."""
    found = MachineDevice(title="GPU", address=address, faults=_of(faults, address))
    if device is None:
        return found
    widths = known(device.max_link_width), known(device.slot_max_link_width)
    rates = known(device.max_link_gts), known(device.slot_max_link_gts)
    return _changed(
        found,
        name=known(device.name) or "",
        link=_link(
            (known(device.link_width), _GENERATIONS.get(known(device.link_gts) or 0.0)),
            (_least(widths), _GENERATIONS.get(_least(rates) or 0.0)),
        ),
        node=known(device.numa_node),
    )


def _least(values: tuple[float | None, ...]) -> int:
    return int(min(filter(None, values), default=0))


def _link(now: tuple[int | None, int | None], most: tuple[int | None, int | None]) -> str:
    """(lanes, generation) as they are and as they could be, which is named where it is more."""
    less = any(have and could and have < could for have, could in zip(now, most, strict=True))
    words = [
        " ".join(f"{sign}{value}" for sign, value in zip(("x", "Gen"), one, strict=True) if value)
        for one in (now, most)
    ]
    return f"{words[0]} (of {words[1]})" if less else words[0]


def _gpu(gpu: Gpu, device: PciDevice | None, faults: _Faults) -> MachineDevice:
    index, address, links = known(gpu.index), known(gpu.pci_address) or "", known(gpu.nvlinks)
    on = _on_bus(device, address, faults)
    active = sum(known(one.active) is True for one in links or [])
    instances = known(gpu.mig_instances) or []
    now = known(gpu.pcie_width), known(gpu.pcie_gen)
    return _changed(
        on,
        title="GPU" if index is None else f"GPU {index}",
        name=known(gpu.name) or "NVIDIA GPU of unknown name",
        notes=list(_notes(gpu)),
        link=on.link or _link(now, (known(gpu.pcie_width_max), known(gpu.pcie_gen_max))),
        nvlinks=f"{active} of {len(links)}" if links else "",
        mig=str(len(instances) or "on, none") if known(gpu.mig_enabled) else "",
        faults=_of(faults, address, known(gpu.uuid) or ""),
    )


def _notes(gpu: Gpu) -> Iterator[str]:
    if memory := known(gpu.memory_total_mib):
        yield f"{memory / 1024:.0f} GiB"
    if (temperature := known(gpu.temperature_c)) is not None:
        yield f"{temperature} °C"
    if (power := known(gpu.power_draw_w)) is not None:
        yield f"{power:.0f} W"


def _unlisted(device: PciDevice, faults: _Faults, driver_lists: bool) -> MachineDevice:
    """A GPU on the bus that the driver does not list."""
    driver = known(device.driver)
    notes = [f"driver {driver}" if driver else "no driver bound"]
    notes += ["not in the driver's list"] if driver_lists else []
    on = _on_bus(device, device.address, faults)
    name = on.name or f"NVIDIA GPU {device.device_id}"
    return _changed(on, name=name, notes=notes, gone=driver_lists)


def _adapters(network: Network, faults: _Faults) -> Iterator[MachineDevice]:
    """RDMA adapters, else the physical network interfaces."""
    adapters = [one for one in known(network.rdma) or [] if not known(one.virtual_function)]
    for nic in adapters:
        notes = []
        for port in nic.ports[:_PORTS]:
            rate, state = known(port.rate_gbps), (known(port.state) or "").lower()
            words = (known(port.link_layer), f"{rate:g} Gb/s" if rate else "", state)
            notes.append(" ".join(filter(None, words)))
        address = known(nic.address) or ""
        now = known(nic.link_width), _GENERATIONS.get(known(nic.link_gts) or 0.0)
        most = known(nic.max_link_width), _GENERATIONS.get(known(nic.max_link_gts) or 0.0)
        yield MachineDevice(
            title=nic.name,
            name=known(nic.board) or "",
            address=address,
            notes=[note for note in notes if note],
            link=_link(now, most),
            node=known(nic.numa_node),
            faults=_of(faults, address, nic.name),
        )
    interfaces = [one for one in known(network.interfaces) or [] if known(one.kind) == "physical"]
    for one in interfaces[:_INTERFACES] if not adapters else ():
        speed, running = known(one.speed_mbit), known(one.running)
        notes = [f"{speed / 1000:g} Gb/s"] if speed and speed > 0 else []
        notes += {True: ["link up"], False: ["no carrier"], None: []}[running]
        yield MachineDevice(title=one.name, name="Ethernet", notes=notes)
