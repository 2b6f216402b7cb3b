"""What the picture of a machine shows: its devices, what they hang on, and what is wrong with each.

Pure, from the Snapshot and the findings' subjects. What a Snapshot does not have is left out: a device whose
bridges nobody knows hangs on its NUMA node, and one whose node nobody knows on the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.missing import CannotJudge
from ...facts.network import RdmaDevice
from ...facts.pci import PciDevice
from ...facts.snapshot import Snapshot
from ...facts.view import view_of
from ...findings.model import CheckResult, Finding, Level
from ..machine import facts

Part = Literal["device", "link", "nvlink"]

# Which part of a device a finding is about, by the fact that it rests on.
_PARTS: dict[str, Part] = {
    **dict.fromkeys(
        (
            *("link_gts", "link_width", "max_link_gts", "max_link_width", "slot_max_link_gts"),
            *("slot_max_link_width", "pcie_gen", "pcie_gen_max", "pcie_width", "pcie_width_max"),
            *("pcie_replays", "aer_fatal", "aer_nonfatal", "aer_correctable", "host_link"),
        ),
        "link",
    ),
    **dict.fromkeys(
        ("nvlinks", "fabric_state", "fabric_status", "fabric_health", "fabric_faults"), "nvlink"
    ),
}
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}
_PORTS = 2  # of an adapter that are told
_INTERFACES = 4  # of a machine without RDMA


class DeviceFault(msgspec.Struct, frozen=True):
    level: Level
    code: str
    words: str
    part: Part = "device"


class PciLink(msgspec.Struct, frozen=True, kw_only=True):
    """A device's link as it is, and as it may be. 0: not known."""

    width: int = 0
    generation: int = 0
    most_width: int = 0
    most_generation: int = 0

    @property
    def now(self) -> str:
        return _link_words(self.width, self.generation)

    @property
    def most(self) -> str:
        """What it could be, where that is more."""
        less = 0 < self.width < self.most_width or 0 < self.generation < self.most_generation
        return _link_words(self.most_width, self.most_generation) if less else ""


class MachineDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU, NVSwitch or network adapter. slot: its address without the function."""

    kind: Literal["gpu", "nvswitch", "nic"]
    title: str
    name: str = ""
    address: str = ""
    notes: list[str] = []
    link: PciLink = PciLink()
    node: int | None = None
    bridges: list[str] = []
    nvlinks: tuple[int, int] | None = None  # active, all
    fabric: str = ""
    instances: list[str] | None = None  # of MIG, by their size; None: MIG is off
    faults: list[DeviceFault] = []
    gone: bool = False  # the driver has lost it, or does not know it

    @property
    def slot(self) -> str:
        return self.address.rpartition(".")[0] or self.title

    def faults_of(self, part: Part) -> list[DeviceFault]:
        return [fault for fault in self.faults if fault.part == part]


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """gpus_known: somebody could say how many GPUs there are."""

    gpus: list[MachineDevice]
    switches: list[MachineDevice]
    nics: list[MachineDevice]
    nodes: int  # NUMA nodes of the machine; 0: not known
    cpu: str
    memory_mib: int
    gpus_known: bool
    bridge_faults: dict[str, list[DeviceFault]]


def topology(snapshot: Snapshot, results: Iterable[CheckResult]) -> Topology:
    machine = snapshot.machine
    pci, host, network = facts(machine.pci), facts(machine.host), facts(machine.network)
    listed = [] if pci is None else known(pci.devices)
    on_bus = {device.address: device for device in listed or []}
    try:
        seen: list[Gpu] | None = view_of(snapshot).gpus
    except CannotJudge:
        seen = None
    faults = _Faults(results)
    gpus = [_gpu(gpu, on_bus.get(known(gpu.pci_address) or ""), faults) for gpu in seen or []]
    told = {gpu.address for gpu in gpus}
    nvml = facts(machine.nvml)
    for lost in nvml.lost if nvml is not None else ():
        address = known(lost.pci_address) or ""
        if not address or address not in told:
            told.add(address)
            gpus.append(_lost(lost.index, lost.error, on_bus.get(address), address, faults))
    others = [one for one in on_bus.values() if one.kind == "gpu" and one.address not in told]
    gpus += [_card(device, faults, seen is not None) for device in others]
    rdma = [] if network is None else known(network.rdma) or []
    nics = [_adapter(one, faults) for one in rdma if not known(one.virtual_function)]
    if not nics and network is not None:
        nics = list(_interfaces(snapshot))
    return Topology(
        gpus=gpus,
        switches=[_switch(one, faults) for one in on_bus.values() if one.kind == "nvswitch"],
        nics=nics,
        nodes=0 if host is None else known(host.numa_nodes) or 0,
        cpu="" if host is None else known(host.cpu_model) or "",
        memory_mib=0 if host is None else known(host.memory_total_mib) or 0,
        gpus_known=seen is not None or (pci is not None and known(pci.devices) is not None),
        bridge_faults=faults.by_address,
    )


class _Faults:
    """What findings say, by the address, UUID and name of what they are about."""

    def __init__(self, results: Iterable[CheckResult]) -> None:
        self.by_address: dict[str, list[DeviceFault]] = {}
        self.by_uuid: dict[str, list[DeviceFault]] = {}
        self.by_name: dict[str, list[DeviceFault]] = {}
        for result in results:
            if result.consequence_of:
                continue
            for finding in result.findings:
                self._add(result.code, finding)

    def _add(self, code: str, finding: Finding) -> None:
        words = finding.headline or finding.message.partition(". ")[0]
        fault = DeviceFault(finding.level, code, words, _part(finding))
        for subject in finding.subjects:
            if subject.address:
                told = self.by_address.setdefault(subject.address, [])
            elif subject.uuid:
                told = self.by_uuid.setdefault(subject.uuid, [])
            elif subject.kind == "pci-device" and subject.name:
                told = self.by_name.setdefault(subject.name, [])
            else:
                continue
            if fault not in told:
                told.append(fault)

    def of(self, address: str, uuid: str = "", name: str = "") -> list[DeviceFault]:
        if not (self.by_address or self.by_uuid or self.by_name):
            return []
        found = list(self.by_address.get(address, ()))
        found += self.by_uuid.get(uuid, []) + self.by_name.get(name, [])
        return sorted(found, key=lambda fault: fault.level != "fail")


def _part(finding: Finding) -> Part:
    """Of a finding that rests on several facts, the first that belongs to a part."""
    for evidence in finding.evidence:
        field = evidence.fact.rpartition(".")[2].partition("[")[0]
        if field in _PARTS:
            return _PARTS[field]
    return "device"


def _gpu(gpu: Gpu, device: PciDevice | None, faults: _Faults) -> MachineDevice:
    index, address = known(gpu.index), known(gpu.pci_address) or ""
    links = known(gpu.nvlinks)
    instances = known(gpu.mig_instances) or []
    return MachineDevice(
        kind="gpu",
        title="GPU" if index is None else f"GPU {index}",
        name=known(gpu.name) or "NVIDIA GPU of unknown name",
        address=address,
        notes=list(_notes(gpu)),
        link=_link_of(device, gpu),
        node=None if device is None else known(device.numa_node),
        bridges=_bridges(device),
        nvlinks=(sum(known(one.active) is True for one in links), len(links)) if links else None,
        fabric=known(gpu.fabric_state) or "",
        instances=[_size(one.memory_mib) for one in instances] if known(gpu.mig_enabled) else None,
        faults=faults.of(address, known(gpu.uuid) or ""),
    )


def _notes(gpu: Gpu) -> Iterator[str]:
    if memory := known(gpu.memory_total_mib):
        yield gib(memory)
    if (temperature := known(gpu.temperature_c)) is not None:
        yield f"{temperature} °C"
    if (power := known(gpu.power_draw_w)) is not None:
        yield f"{power:.0f} W"


def _lost(
    index: int, error: str, device: PciDevice | None, address: str, faults: _Faults
) -> MachineDevice:
    return MachineDevice(
        kind="gpu",
        title=f"GPU {index}",
        name=(known(device.name) if device is not None else None) or "",
        address=address,
        notes=[f"lost: {error}"],
        link=_link_of(device),
        node=None if device is None else known(device.numa_node),
        bridges=_bridges(device),
        faults=faults.of(address),
        gone=True,
    )


def _card(device: PciDevice, faults: _Faults, driver_told: bool) -> MachineDevice:
    """A GPU that stands on the bus, and that the driver does not list."""
    driver = known(device.driver)
    told = f"driver {driver}" if driver else "no driver bound"
    return MachineDevice(
        kind="gpu",
        title="GPU",
        name=known(device.name) or f"NVIDIA GPU {device.device_id}",
        address=device.address,
        notes=[told, *(["not in the driver's list"] if driver_told else [])],
        link=_link_of(device),
        node=known(device.numa_node),
        bridges=_bridges(device),
        faults=faults.of(device.address),
        gone=driver_told,
    )


def _switch(device: PciDevice, faults: _Faults) -> MachineDevice:
    return MachineDevice(
        kind="nvswitch",
        title="NVSwitch",
        name=known(device.name) or "",
        address=device.address,
        node=known(device.numa_node),
        faults=faults.of(device.address),
    )


def _adapter(nic: RdmaDevice, faults: _Faults) -> MachineDevice:
    notes = []
    for port in nic.ports[:_PORTS]:
        rate, layer = known(port.rate_gbps), known(port.link_layer) or ""
        state = (known(port.state) or "").lower()
        notes.append(" ".join(filter(None, (layer, f"{rate:g} Gb/s" if rate else "", state))))
    address = known(nic.address) or ""
    return MachineDevice(
        kind="nic",
        title=nic.name,
        name=known(nic.board) or "",
        address=address,
        notes=[note for note in notes if note],
        link=PciLink(
            width=known(nic.link_width) or 0,
            generation=_generation(known(nic.link_gts)),
            most_width=min(
                filter(None, (known(nic.max_link_width), known(nic.slot_max_link_width))), default=0
            ),
            most_generation=_generation(known(nic.max_link_gts)),
        ),
        node=known(nic.numa_node),
        bridges=known(nic.bridges) or [],
        faults=faults.of(address, "", nic.name),
    )


def _interfaces(snapshot: Snapshot) -> Iterator[MachineDevice]:
    network = facts(snapshot.machine.network)
    physical = [
        one
        for one in (known(network.interfaces) if network is not None else None) or []
        if known(one.kind) == "physical"
    ]
    for one in physical[:_INTERFACES]:
        speed, running = known(one.speed_mbit), known(one.running)
        notes = [f"{speed / 1000:g} Gb/s"] if speed and speed > 0 else []
        notes += {True: ["link up"], False: ["no carrier"], None: []}[running]
        yield MachineDevice(kind="nic", title=one.name, name="Ethernet", notes=notes)


def _link_of(device: PciDevice | None, gpu: Gpu | None = None) -> PciLink:
    """As the kernel says, else as the driver does."""
    width = generation = most_width = most_generation = 0
    if device is not None:
        width, generation = known(device.link_width) or 0, _generation(known(device.link_gts))
        widths = known(device.max_link_width), known(device.slot_max_link_width)
        most_width = min(filter(None, widths), default=0)
        rates = known(device.max_link_gts), known(device.slot_max_link_gts)
        most_generation = _generation(min(filter(None, rates), default=None))
    if gpu is not None:
        width = width or known(gpu.pcie_width) or 0
        generation = generation or known(gpu.pcie_gen) or 0
        most_width = most_width or known(gpu.pcie_width_max) or 0
        most_generation = most_generation or known(gpu.pcie_gen_max) or 0
    return PciLink(
        width=width, generation=generation, most_width=most_width, most_generation=most_generation
    )


def _bridges(device: PciDevice | None) -> list[str]:
    if device is None:
        return []
    return known(device.bridges) or [slot for slot in [known(device.slot)] if slot]


def _generation(gts: float | None) -> int:
    return 0 if gts is None else _GENERATIONS.get(gts, 0)


def _link_words(width: int, generation: int) -> str:
    return " ".join(
        filter(None, (f"x{width}" if width else "", f"Gen{generation}" if generation else ""))
    )


def gib(mib: int) -> str:
    """ "80 GiB", "2 TiB" """
    if mib >= 1024 * 1024:
        return f"{mib / 1024 / 1024:.3g} TiB"
    return f"{mib / 1024:.0f} GiB" if mib >= 1024 else f"{mib} MiB"


def _size(memory: object) -> str:
    return gib(memory) if isinstance(memory, int) else "MIG"


def shared_bridges(devices: Sequence[MachineDevice]) -> dict[str, str]:
    """By a device's address, the nearest bridge above it that has another slot under it, too."""
    slots: dict[str, set[str]] = {}
    for device in devices:
        for bridge in device.bridges:
            slots.setdefault(bridge, set()).add(device.slot)
    found = {}
    for device in devices:
        shared = (bridge for bridge in reversed(device.bridges) if len(slots[bridge]) > 1)
        found[device.address or device.title] = next(shared, "")
    return found
