"""What a Snapshot tells of a machine, its adapters and its target, for the keys of a profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

from ..facts.base import NOT_COLLECTED, Maybe, Probe, Unavailable, known
from ..facts.containers import Containers
from ..facts.gpu import Gpu
from ..facts.network import RdmaDevice
from ..facts.target import FRAMEWORKS, TargetInterpreter
from ..facts.view import SnapshotView

Fact = Union[bool, int, float, str, Unavailable]
_STEPS = 16  # of the next lower power of two, to which memory is rounded up


def facts_or(probe: Probe[Any] | None) -> Any:
    """A probe's facts, else why there are none."""
    if probe is None:
        return NOT_COLLECTED
    if probe.facts is None:
        return Unavailable(unavailable="error", detail=probe.reason or probe.outcome)
    return probe.facts


def machine(path: str) -> Callable[[SnapshotView], Fact]:
    """A fact of the machine's document: "host.kernel"."""
    section, _dot, field = path.partition(".")

    def fact(view: SnapshotView) -> Fact:
        facts = facts_or(getattr(view.machine, section))
        if isinstance(facts, Unavailable):
            return facts
        found: Fact = getattr(facts, field)
        return found

    return fact


def absent_is(word: str, path: str) -> Callable[[SnapshotView], Fact]:
    """The fact, and this word where it was asked for and is not there."""
    whole = machine(path)

    def fact(view: SnapshotView) -> Fact:
        found = whole(view)
        absent = isinstance(found, Unavailable) and found.unavailable == "absent"
        return word if absent else found

    return fact


def first_of(*paths: str) -> Callable[[SnapshotView], Fact]:
    """The first of these facts that is known, else why the last is not."""
    ways = [machine(path) for path in paths]

    def fact(view: SnapshotView) -> Fact:
        told: Fact = NOT_COLLECTED
        for way in ways:
            told = way(view)
            if not isinstance(told, Unavailable):
                return told
        return told

    return fact


def joined(name: str, version: str) -> Callable[[SnapshotView], Fact]:
    """ "ubuntu 24.04": a name, with its version where that is known."""
    ways = machine(name), machine(version)

    def fact(view: SnapshotView) -> Fact:
        first, second = ways[0](view), ways[1](view)
        if isinstance(first, Unavailable):
            return first
        return str(first) if isinstance(second, Unavailable) else f"{first} {second}"

    return fact


_memory_mib = machine("host.memory_total_mib")


def memory(view: SnapshotView) -> Fact:
    total = _memory_mib(view)
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
    """The least that a machine tells of which memory_built_in() says this."""
    return int(gib * (_STEPS - 1) / _STEPS)


def _service(name: str, field: str) -> Callable[[SnapshotView], Fact]:
    def fact(view: SnapshotView) -> Fact:
        kernel = facts_or(view.machine.kernel)
        services = [] if isinstance(kernel, Unavailable) else kernel.services
        found = next((service for service in services if service.name == name), None)
        told: Fact = NOT_COLLECTED if found is None else getattr(found, field)
        return told

    return fact


def runs(name: str) -> Callable[[SnapshotView], Fact]:
    return _service(name, "running")


def version_of_service(name: str) -> Callable[[SnapshotView], Fact]:
    return _service(name, "version")


def module_loaded(*names: str) -> Callable[[SnapshotView], Fact]:
    """Whether one of these kernel modules is loaded."""

    def fact(view: SnapshotView) -> Fact:
        kernel = facts_or(view.machine.kernel)
        modules = kernel if isinstance(kernel, Unavailable) else kernel.modules
        if isinstance(modules, Unavailable):
            return modules
        return not {module.name for module in modules}.isdisjoint(names)

    return fact


def nvswitches(view: SnapshotView) -> Fact:
    pci = facts_or(view.machine.pci)
    devices = None if isinstance(pci, Unavailable) else known(pci.devices)
    if devices is None:
        return NOT_COLLECTED
    return len([device for device in devices if device.kind == "nvswitch"])


def acs_ports(view: SnapshotView) -> Fact:
    """How many bridges above GPUs and adapters send what devices say to each other round by the root."""
    pci = facts_or(view.machine.pci)
    ports = pci if isinstance(pci, Unavailable) else pci.acs_ports
    return ports if isinstance(ports, Unavailable) else len(ports)


def engine(name: str, field: str = "version") -> Callable[[SnapshotView], Fact]:
    def fact(view: SnapshotView) -> Fact:
        containers: Containers | Unavailable = facts_or(view.machine.containers)
        if isinstance(containers, Unavailable):
            return containers
        for one in containers.engines:
            if one.name == name:
                told: Fact = getattr(one, field)
                return told
        return Unavailable(unavailable="absent", detail="not installed")

    return fact


def kubernetes(view: SnapshotView) -> Fact:
    """ "k3s containerd": a node's distribution and its engine."""
    containers = facts_or(view.machine.containers)
    node = None if isinstance(containers, Unavailable) else containers.kubernetes
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


def adapter_name(device: RdmaDevice) -> str:
    """What adapters of one kind are called: their board, else their driver."""
    return known(device.board) or known(device.driver) or ""


def fastest(device: RdmaDevice) -> Fact:
    rates = [rate for port in device.ports if (rate := known(port.rate_gbps)) is not None]
    return max(rates) if rates else NOT_COLLECTED


def port(field: str) -> Callable[[RdmaDevice], Fact]:
    """What the port in use has: the first that is ACTIVE, else the first."""

    def fact(device: RdmaDevice) -> Fact:
        ports = sorted(device.ports, key=lambda port: known(port.state) != "ACTIVE")
        found: Fact = getattr(ports[0], field) if ports else NOT_COLLECTED
        return found

    return fact


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


def interpreter(field: str) -> Callable[[SnapshotView], Fact]:
    def fact(view: SnapshotView) -> Fact:
        target = view.snapshot.target
        facts: TargetInterpreter | Unavailable = facts_or(
            None if target is None else target.interpreter
        )
        found: Fact = facts if isinstance(facts, Unavailable) else getattr(facts, field)
        return found

    return fact


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
