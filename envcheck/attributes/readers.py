"""How an attribute is read from a Snapshot: the words of the column "fact" of `attributes.csv`.

A path is a fact of the machine ("host.kernel"), or a field of a GPU or adapter. "A B" joins two, "A | B"
takes the first that is known, "A or none" has a word for what is absent. "engine docker.version",
"service NAME.running", "module NAME", "target version" and "port.state" look into lists; "=name" is a
function of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Union

from ..facts.base import NOT_COLLECTED, Maybe, Probe, Unavailable, known
from ..facts.gpu import Gpu
from ..facts.network import NetworkInterface, RdmaDevice
from ..facts.target import FRAMEWORKS
from ..facts.view import SnapshotView

Fact = Union[bool, int, float, str, Unavailable]
Reader = Callable[[Any], Fact]

_STEPS = 16  # of the next lower power of two, to which memory is rounded up


def reader(words: str, of_device: bool = False) -> Reader:
    """The function that reads what these words name, from a device or a SnapshotView."""
    first, _, rest = words.partition(" ")
    if words.startswith("="):
        return _FUNCTIONS[words[1:]]
    if words.startswith("port."):
        return lambda device: _port(device, words.removeprefix("port."))
    if of_device:
        return attrgetter(words)
    if first in _LISTS:
        find = _LISTS[first]
        return lambda view: find(view, rest)
    if " | " in words:
        return lambda view: _first_known(_fact(view, path) for path in words.split(" | "))
    if words.endswith(" or none"):
        return lambda view: _or_none(_fact(view, first))
    if rest:
        return lambda view: _joined(_fact(view, first), _fact(view, rest))
    return lambda view: _fact(view, words)


def facts_or(probe: Probe[Any] | None) -> Any:
    """A probe's facts, else why there are none."""
    if probe is None:
        return NOT_COLLECTED
    if probe.facts is None:
        return Unavailable(unavailable="error", detail=probe.reason or probe.outcome)
    return probe.facts


def _fact(view: SnapshotView, path: str) -> Any:
    section, _, field = path.partition(".")
    facts = facts_or(getattr(view.machine, section))
    return facts if isinstance(facts, Unavailable) else getattr(facts, field)


def _first_known(facts: Iterable[Fact]) -> Fact:
    last: Fact = NOT_COLLECTED
    for last in facts:
        if not isinstance(last, Unavailable):
            break
    return last


def _or_none(fact: Fact) -> Fact:
    absent = isinstance(fact, Unavailable) and fact.unavailable == "absent"
    return "none" if absent else fact


def _joined(name: Fact, version: Fact) -> Fact:
    """ "ubuntu 24.04": a name, with its version where that is known."""
    if isinstance(name, Unavailable):
        return name
    return str(name) if isinstance(version, Unavailable) else f"{name} {version}"


def _engine(view: SnapshotView, words: str) -> Fact:
    name, field = words.split(".")
    engines = _fact(view, "containers.engines")
    if isinstance(engines, Unavailable):
        return engines
    absent = Unavailable(unavailable="absent", detail="not installed")
    found: Fact = next((getattr(one, field) for one in engines if one.name == name), absent)
    return found


def _service(view: SnapshotView, words: str) -> Fact:
    name, field = words.split(".")
    services = known(_fact(view, "kernel.services")) or []
    return next((getattr(one, field) for one in services if one.name == name), NOT_COLLECTED)


def _module(view: SnapshotView, words: str) -> Fact:
    """Whether one of these kernel modules is loaded."""
    modules = _fact(view, "kernel.modules")
    if isinstance(modules, Unavailable):
        return modules
    return not {module.name for module in modules}.isdisjoint(words.split())


def _target(view: SnapshotView, field: str) -> Fact:
    target = view.snapshot.target
    facts = facts_or(None if target is None else target.interpreter)
    found: Fact = facts if isinstance(facts, Unavailable) else getattr(facts, field)
    return found


def memory(view: SnapshotView) -> Fact:
    total: Maybe[int] = _fact(view, "host.memory_total_mib")
    return total if isinstance(total, Unavailable) else int(total) // 1024


def memory_built_in(gib: Fact) -> Fact:
    """What the kernel counts, rounded up to what was likely built in: it keeps some of it to itself.

    2015 GiB are 2048; a module that is missing is more than what the rounding hides.
    """
    if not isinstance(gib, int) or gib < 1:
        return gib
    gib += 1  # of which a part was cut off
    step = max(1, (1 << (gib.bit_length() - 1)) // _STEPS)
    return -(-gib // step) * step


def least_of_built_in(gib: float) -> int:
    """The least that the kernel counts where memory_built_in() gives this."""
    return int(gib * (_STEPS - 1) / _STEPS)


def nvswitches(view: SnapshotView) -> Fact:
    devices = known(_fact(view, "pci.devices"))
    if devices is None:
        return NOT_COLLECTED
    return len([device for device in devices if device.kind == "nvswitch"])


def acs_ports(view: SnapshotView) -> Fact:
    """How many bridges above GPUs and adapters redirect peer-to-peer traffic to the root complex."""
    ports: Maybe[list[object]] = _fact(view, "pci.acs_ports")
    return ports if isinstance(ports, Unavailable) else len(ports)


def kubernetes(view: SnapshotView) -> Fact:
    """ "k3s containerd": a node's distribution and its engine."""
    node = known(_fact(view, "containers.kubernetes"))
    if node is None:
        return NOT_COLLECTED
    return f"{node.distribution} {known(node.engine) or ''}".strip()


def adapters(view: SnapshotView) -> Maybe[list[RdmaDevice]]:
    """The machine's adapters for RDMA, without virtual functions of them."""
    probe = view.machine.network
    if probe is None or probe.facts is None:
        return NOT_COLLECTED
    devices = probe.facts.rdma
    if isinstance(devices, Unavailable):
        return [] if devices.unavailable == "absent" else devices
    return [device for device in devices if known(device.virtual_function) is not True]


def interfaces(view: SnapshotView) -> list[NetworkInterface]:
    """Those of adapters, bonds and VLANs that are in use."""
    probe = view.machine.network
    found = None if probe is None or probe.facts is None else known(probe.facts.interfaces)
    return [
        one
        for one in found or []
        if known(one.kind) in ("physical", "bond", "vlan") and known(one.running)
    ]


def adapter_name(device: RdmaDevice) -> str:
    """What adapters of one kind are called: their board, else their driver."""
    return known(device.board) or known(device.driver) or ""


def fastest(device: RdmaDevice) -> Fact:
    return max(
        (rate for port in device.ports if (rate := known(port.rate_gbps)) is not None),
        default=NOT_COLLECTED,
    )


def _port(device: RdmaDevice, field: str) -> Fact:
    """What the port in use has: the first that is ACTIVE, else the first."""
    ports = sorted(device.ports, key=lambda port: known(port.state) != "ACTIVE")
    found = getattr(ports[0], field) if ports else NOT_COLLECTED
    return ", ".join(map(str, found)) or "none" if isinstance(found, list) else found


def nvlinks(gpu: Gpu) -> Maybe[int]:
    """The NVLinks that are up."""
    links = gpu.nvlinks
    if isinstance(links, Unavailable):
        return links
    return sum(bool(known(link.active)) for link in links)


def mig_instances(gpu: Gpu) -> Fact:
    """ "7 × 10240 MiB": how a GPU is divided."""
    instances = gpu.mig_instances
    if isinstance(instances, Unavailable):
        return instances
    sizes = sorted(known(one.memory_mib) or 0 for one in instances)
    return ", ".join(f"{sizes.count(size)} × {size} MiB" for size in sorted(set(sizes))) or "none"


def package(view: SnapshotView, name: str) -> Maybe[str]:
    """The version of a distribution in the target."""
    target = view.snapshot.target
    probe = None if target is None else target.packages
    if probe is None or probe.facts is None:
        return Unavailable(unavailable="not-collected", detail="no target was looked at (--target)")
    wanted = name.lower().replace("_", "-").replace(".", "-")
    for one in probe.facts.distributions:
        if one.normalized == wanted and not one.shadowed:
            return one.version
    if wanted in FRAMEWORKS or wanted.startswith("nvidia-"):
        return Unavailable(unavailable="absent", detail="not installed")
    return Unavailable(unavailable="not-collected", detail="not among those that are looked at")


_LISTS = {"engine": _engine, "service": _service, "module": _module, "target": _target}
_FUNCTIONS: dict[str, Reader] = {
    one.__name__: one
    for one in (memory, nvswitches, acs_ports, kubernetes, fastest, nvlinks, mig_instances)
}
