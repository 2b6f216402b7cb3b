"""The devices of a machine, what each is attached to, and what is wrong with it.

What the Snapshot does not have is omitted: a device without known bridges is attached to its NUMA node, one
without a known node to the machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from ..facts.base import known
from ..facts.evidence import Evidence
from ..facts.gpu import Gpu
from ..facts.missing import CannotJudge
from ..facts.network import Network, RdmaDevice
from ..facts.pci import PciDevice
from ..facts.snapshot import Snapshot
from ..facts.view import view_of
from ..findings.model import Level
from .machine import facts
from .results import AnyResult

Part = Literal["device", "link", "nvlink"]

# The part of a device that a finding is about, by the fact that it rests on.
_PARTS: dict[Part, frozenset[str]] = {
    "link": frozenset(
        (
            *("link_gts", "link_width", "max_link_gts", "max_link_width", "slot_max_link_gts"),
            *("slot_max_link_width", "pcie_gen", "pcie_gen_max", "pcie_width", "pcie_width_max"),
            *("pcie_replays", "aer_fatal", "aer_nonfatal", "aer_correctable", "host_link"),
        )
    ),
    "nvlink": frozenset(
        ("nvlinks", "fabric_state", "fabric_status", "fabric_health", "fabric_faults")
    ),
}
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}
_PORTS = 2  # shown of an adapter
_INTERFACES = 4  # shown of a machine without RDMA


class DeviceFault(msgspec.Struct, frozen=True):
    level: Level
    code: str
    words: str
    part: Part = "device"


class PciLink(msgspec.Struct, frozen=True, kw_only=True):
    """A device's link as it is, and as it could be. 0: not known."""

    width: int = 0
    generation: int = 0
    most_width: int = 0
    most_generation: int = 0

    @property
    def now(self) -> str:
        return _link_words(self.width, self.generation)

    @property
    def most(self) -> str:
        """What the link could be, where that is more."""
        less = 0 < self.width < self.most_width or 0 < self.generation < self.most_generation
        return _link_words(self.most_width, self.most_generation) if less else ""


class MachineDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU, NVSwitch or network adapter."""

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
    gone: bool = False  # the driver has lost it, or does not list it

    @property
    def slot(self) -> str:
        """Its address without the function."""
        return self.address.rpartition(".")[0] or self.title

    def worst(self, part: Part | None = None) -> str:
        """ "fail", "warn" or "": of the faults of that part, or of all."""
        return worst([one for one in self.faults if part in (None, one.part)])


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """gpus_known: whether the number of GPUs is known. nodes: NUMA nodes, 0: not known."""

    gpus: list[MachineDevice]
    switches: list[MachineDevice]
    nics: list[MachineDevice]
    cpu: str
    memory_mib: int
    gpus_known: bool
    bridge_faults: dict[str, list[DeviceFault]]


def topology(snapshot: Snapshot, results: Iterable[AnyResult]) -> Topology:
    machine = snapshot.machine
    pci, host, network = facts(machine.pci), facts(machine.host), facts(machine.network)
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
    nvml = facts(machine.nvml)
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
        _changed(_on_bus(device, device.address, faults), kind="nvswitch", title="NVSwitch")
        for device in on_bus.values()
        if device.kind == "nvswitch"
    ]
    return Topology(
        gpus=gpus,
        switches=switches,
        nics=list(_adapters(network, faults)) if network is not None else [],
        cpu=(known(host.cpu_model) if host is not None else None) or "",
        memory_mib=(known(host.memory_total_mib) if host is not None else None) or 0,
        gpus_known=driver_gpus is not None or listed is not None,
        bridge_faults=faults,
    )


def worst(faults: Sequence[DeviceFault]) -> str:
    return "" if not faults else "fail" if any(one.level == "fail" for one in faults) else "warn"


def _faults(results: Iterable[AnyResult]) -> dict[str, list[DeviceFault]]:
    """What findings say of devices, by address, else UUID, else name."""
    found: dict[str, list[DeviceFault]] = defaultdict(list)
    for result in results:
        for finding in result.findings if not result.consequence_of else ():
            words = finding.headline or finding.message
            fault = DeviceFault(finding.level, result.code, words, _part(finding.evidence))
            for subject in finding.subjects:
                name = subject.name if subject.kind == "pci-device" else ""
                key = subject.address or subject.uuid or name
                if key and fault not in found[key]:
                    found[key].append(fault)
    return found


def _part(evidence: Iterable[Evidence]) -> Part:
    """Of a finding that rests on several facts, the first that belongs to a part."""
    for one in evidence:
        field = one.fact.rpartition(".")[2].partition("[")[0]
        for part, fields in _PARTS.items():
            if field in fields:
                return part
    return "device"


def _of(faults: dict[str, list[DeviceFault]], *keys: str) -> list[DeviceFault]:
    found = [fault for key in keys if key for fault in faults.get(key, ())]
    return sorted(found, key=lambda fault: fault.level != "fail")


_changed = msgspec.structs.replace


def _on_bus(
    device: PciDevice | None, address: str, faults: dict[str, list[DeviceFault]]
) -> MachineDevice:
    """What the PCI bus knows of a GPU or NVSwitch; nothing for None."""
    found = MachineDevice(kind="gpu", title="GPU", address=address, faults=_of(faults, address))
    if device is None:
        return found
    slot = known(device.slot)
    return _changed(
        found,
        name=known(device.name) or "",
        link=_link(device, known(device.slot_max_link_gts)),
        node=known(device.numa_node),
        bridges=known(device.bridges) or ([slot] if slot else []),
    )


def _gpu(gpu: Gpu, device: PciDevice | None, faults: dict[str, list[DeviceFault]]) -> MachineDevice:
    index, address = known(gpu.index), known(gpu.pci_address) or ""
    links = known(gpu.nvlinks)
    mig = [_size(one.memory_mib) for one in known(gpu.mig_instances) or []]
    on = _on_bus(device, address, faults)
    link = PciLink(
        width=on.link.width or known(gpu.pcie_width) or 0,
        generation=on.link.generation or known(gpu.pcie_gen) or 0,
        most_width=on.link.most_width or known(gpu.pcie_width_max) or 0,
        most_generation=on.link.most_generation or known(gpu.pcie_gen_max) or 0,
    )
    return _changed(
        on,
        title="GPU" if index is None else f"GPU {index}",
        name=known(gpu.name) or "NVIDIA GPU of unknown name",
        notes=list(_notes(gpu)),
        link=link,
        nvlinks=(sum(known(one.active) is True for one in links), len(links)) if links else None,
        fabric=known(gpu.fabric_state) or "",
        instances=mig if known(gpu.mig_enabled) else None,
        faults=_of(faults, address, known(gpu.uuid) or ""),
    )


def _notes(gpu: Gpu) -> Iterator[str]:
    if memory := known(gpu.memory_total_mib):
        yield gib(memory)
    if (temperature := known(gpu.temperature_c)) is not None:
        yield f"{temperature} °C"
    if (power := known(gpu.power_draw_w)) is not None:
        yield f"{power:.0f} W"


def _unlisted(
    device: PciDevice, faults: dict[str, list[DeviceFault]], driver_lists: bool
) -> MachineDevice:
    """A GPU on the bus that the driver does not list."""
    driver = known(device.driver)
    notes = [f"driver {driver}" if driver else "no driver bound"]
    notes += ["not in the driver's list"] if driver_lists else []
    on = _on_bus(device, device.address, faults)
    name = on.name or f"NVIDIA GPU {device.device_id}"
    return _changed(on, name=name, notes=notes, gone=driver_lists)


def _adapters(network: Network, faults: dict[str, list[DeviceFault]]) -> Iterator[MachineDevice]:
    """RDMA adapters, else the physical network interfaces."""
    adapters = [one for one in known(network.rdma) or [] if not known(one.virtual_function)]
    for nic in adapters:
        address = known(nic.address) or ""
        notes = []
        for port in nic.ports[:_PORTS]:
            rate, state = known(port.rate_gbps), (known(port.state) or "").lower()
            words = (known(port.link_layer), f"{rate:g} Gb/s" if rate else "", state)
            notes.append(" ".join(filter(None, words)))
        yield MachineDevice(
            kind="nic",
            title=nic.name,
            name=known(nic.board) or "",
            address=address,
            notes=[note for note in notes if note],
            link=_link(nic),
            node=known(nic.numa_node),
            bridges=known(nic.bridges) or [],
            faults=_of(faults, address, nic.name),
        )
    interfaces = [one for one in known(network.interfaces) or [] if known(one.kind) == "physical"]
    for one in interfaces[:_INTERFACES] if not adapters else ():
        speed, running = known(one.speed_mbit), known(one.running)
        notes = [f"{speed / 1000:g} Gb/s"] if speed and speed > 0 else []
        notes += {True: ["link up"], False: ["no carrier"], None: []}[running]
        yield MachineDevice(kind="nic", title=one.name, name="Ethernet", notes=notes)


def _link(device: PciDevice | RdmaDevice, slot_gts: float | None = None) -> PciLink:
    """As the kernel reports it."""
    widths = known(device.max_link_width), known(device.slot_max_link_width)
    rates = known(device.max_link_gts), slot_gts
    return PciLink(
        width=known(device.link_width) or 0,
        generation=_GENERATIONS.get(known(device.link_gts) or 0.0, 0),
        most_width=min(filter(None, widths), default=0),
        most_generation=_GENERATIONS.get(min(filter(None, rates), default=0.0), 0),
    )


def _link_words(width: int, generation: int) -> str:
    parts = (f"x{width}" if width else "", f"Gen{generation}" if generation else "")
    return " ".join(filter(None, parts))


def gib(mib: int) -> str:
    """ "80 GiB", "2 TiB" """
    if mib >= 1024 * 1024:
        return f"{mib / 1024 / 1024:.3g} TiB"
    return f"{mib / 1024:.0f} GiB" if mib >= 1024 else f"{mib} MiB"


def _size(memory: object) -> str:
    return gib(memory) if isinstance(memory, int) else "MIG"
