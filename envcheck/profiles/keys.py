"""The keys of a profile: what each means, and the fact that it is held against.

Reading, judging and writing a profile rest on this one table, so a machine fits its own profile.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Union

from ..facts.base import NOT_COLLECTED, Maybe, Unavailable, known
from ..facts.gpu import Gpu
from ..facts.network import RdmaDevice
from ..facts.target import FRAMEWORKS
from ..facts.view import SnapshotView

Fact = Union[bool, int, float, str, Unavailable]
# number: 8, or bounds (">= 8"); version: "570" (any 570.x), or bounds; switch: true or false.
Kind = Literal["number", "version", "text", "switch"]


class Key(NamedTuple):
    """words: what it is, in a sentence. fact: of a SnapshotView, a Gpu or an RdmaDevice. at: its path.

    least: a profile that is written of a machine has it as a lower bound.
    """

    name: str
    kind: Kind
    words: str
    comment: str
    fact: Callable[[Any], Fact]
    at: str
    least: bool = False


class Section(NamedTuple):
    """many: [[name]], a table for each kind of device, with a "count"."""

    comment: str
    keys: tuple[Key, ...]
    many: bool = False


def _machine(path: str) -> Callable[[SnapshotView], Fact]:
    section, _dot, field = path.partition(".")

    def fact(view: SnapshotView) -> Fact:
        probe = getattr(view.machine, section)
        if probe is None:
            return NOT_COLLECTED
        if probe.facts is None:
            return Unavailable(unavailable="error", detail=probe.reason or probe.outcome)
        found: Fact = getattr(probe.facts, field)
        return found

    return fact


def _absent_is(word: str, path: str) -> Callable[[SnapshotView], Fact]:
    """The fact, and this word where it was asked for and is not there."""

    def fact(view: SnapshotView) -> Fact:
        found = _machine(path)(view)
        absent = isinstance(found, Unavailable) and found.unavailable == "absent"
        return word if absent else found

    return fact


def _os(view: SnapshotView) -> Fact:
    name, version = _machine("host.os_id")(view), _machine("host.os_version")(view)
    if isinstance(name, Unavailable):
        return name
    return str(name) if isinstance(version, Unavailable) else f"{name} {version}"


def _memory(view: SnapshotView) -> Fact:
    total = _machine("host.memory_total_mib")(view)
    return total if isinstance(total, Unavailable) else int(total) // 1024


def _driver(view: SnapshotView) -> Fact:
    told: Fact = NOT_COLLECTED
    for path in ("nvml.driver_version", "nvidia_smi.driver_version", "kernel.driver_version"):
        told = _machine(path)(view)
        if not isinstance(told, Unavailable):
            return told
    return told


def _cuda(view: SnapshotView) -> Fact:
    told = _machine("nvml.cuda_version")(view)
    return _machine("nvidia_smi.cuda_version")(view) if isinstance(told, Unavailable) else told


def _runs(name: str) -> Callable[[SnapshotView], Fact]:
    def fact(view: SnapshotView) -> Fact:
        kernel = view.machine.kernel
        services = kernel.facts.services if kernel is not None and kernel.facts is not None else []
        found = next((service for service in services if service.name == name), None)
        return NOT_COLLECTED if found is None else found.running

    return fact


def _nvswitches(view: SnapshotView) -> Fact:
    pci = view.machine.pci
    devices = None if pci is None or pci.facts is None else known(pci.facts.devices)
    if devices is None:
        return NOT_COLLECTED
    return sum(device.kind == "nvswitch" for device in devices)


def _engine(name: str) -> Callable[[SnapshotView], Fact]:
    def fact(view: SnapshotView) -> Fact:
        probe = view.machine.containers
        engines = probe.facts.engines if probe is not None and probe.facts is not None else []
        return next((one.version for one in engines if one.name == name), NOT_COLLECTED)

    return fact


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


def _fastest(device: RdmaDevice) -> Fact:
    rates = [rate for port in device.ports if (rate := known(port.rate_gbps)) is not None]
    return max(rates) if rates else NOT_COLLECTED


def _port(field: str) -> Callable[[RdmaDevice], Fact]:
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


def _gpu(name: str, kind: Kind, words: str, comment: str, field: str = "") -> Key:
    field = field or name
    return Key(name, kind, words, comment, attrgetter(field), field)


SECTIONS: dict[str, Section] = {
    "machine": Section(
        "The machine itself.",
        (
            Key("os", "text", "operating system", "name and version", _os, "host.os_id"),
            Key("kernel", "version", "kernel", "", _machine("host.kernel"), "host.kernel"),
            Key(
                "architecture",
                "text",
                "architecture",
                "",
                _machine("host.architecture"),
                "host.architecture",
            ),
            Key(
                "hypervisor",
                "text",
                "hypervisor",
                '"none" on bare metal',
                _absent_is("none", "host.hypervisor"),
                "host.hypervisor",
            ),
            Key("cpu", "text", "processor", "", _machine("host.cpu_model"), "host.cpu_model"),
            Key(
                "cpus",
                "number",
                "number of CPUs",
                "hardware threads",
                _machine("host.cpus_present"),
                "host.cpus_present",
            ),
            Key(
                "memory_gib",
                "number",
                "memory in GiB",
                "",
                _memory,
                "host.memory_total_mib",
                least=True,
            ),
            Key(
                "numa_nodes",
                "number",
                "number of NUMA nodes",
                "",
                _machine("host.numa_nodes"),
                "host.numa_nodes",
            ),
            Key(
                "nvswitches",
                "number",
                "number of NVSwitches",
                "on the PCI bus",
                _nvswitches,
                "pci.devices",
            ),
        ),
    ),
    "driver": Section(
        "NVIDIA's driver.",
        (
            Key(
                "version",
                "version",
                "driver",
                '"570" is any 570.x; ">= 570, < 580" bounds it',
                _driver,
                "nvml.driver_version",
            ),
            Key(
                "cuda",
                "version",
                "newest CUDA of the driver",
                "",
                _cuda,
                "nvml.cuda_version",
            ),
            Key(
                "flavour",
                "text",
                "kernel module",
                '"open" or "proprietary"',
                _machine("kernel.driver_flavour"),
                "kernel.driver_flavour",
            ),
            Key(
                "fabric_manager",
                "switch",
                "fabric manager",
                "whether it runs",
                _runs("nvidia-fabricmanager"),
                "kernel.services",
            ),
            Key(
                "persistence_daemon",
                "switch",
                "persistence daemon",
                "whether it runs",
                _runs("nvidia-persistenced"),
                "kernel.services",
            ),
        ),
    ),
    "gpus": Section(
        "GPUs: a table for each name. Each key holds for each of them.",
        (
            _gpu("memory_mib", "number", "memory in MiB", "", "memory_total_mib"),
            Key("nvlinks", "number", "NVLinks", "how many are up", nvlinks, "nvlinks"),
            _gpu(
                "pcie_generation",
                "number",
                "PCIe generation",
                "the highest of card and slot",
                "pcie_gen_max",
            ),
            _gpu("pcie_lanes", "number", "PCIe lanes", "that the link has now", "pcie_width"),
            _gpu("ecc", "switch", "ECC", "", "ecc_enabled"),
            _gpu("mig", "switch", "MIG", "", "mig_enabled"),
            _gpu("persistence", "switch", "persistence mode", ""),
            _gpu("compute_mode", "text", "compute mode", ""),
            _gpu("power_limit_w", "number", "power limit in W", ""),
            _gpu("sm_clock_max_mhz", "number", "highest SM clock in MHz", "", "clock_sm_max_mhz"),
            _gpu("vbios", "text", "VBIOS", ""),
            _gpu("inforom", "text", "InfoROM image", ""),
            _gpu("fabric_state", "text", "state of the NVLink fabric", ""),
        ),
        many=True,
    ),
    "nics": Section(
        "Adapters for RDMA (InfiniBand, RoCE): a table for each kind.",
        (
            Key("driver", "text", "driver", "", attrgetter("driver"), "driver"),
            Key("firmware", "version", "firmware", "", attrgetter("firmware"), "firmware"),
            Key("rate_gbps", "number", "rate in Gbit/s", "of the fastest port", _fastest, "ports"),
            Key(
                "link_layer",
                "text",
                "link layer",
                '"InfiniBand", or "Ethernet" (RoCE)',
                _port("link_layer"),
                "ports",
            ),
            Key("state", "text", "state of its port", "", _port("state"), "ports"),
        ),
        many=True,
    ),
    "tools": Section(
        "What brings GPUs into containers.",
        (
            Key(
                "container_toolkit",
                "version",
                "NVIDIA Container Toolkit",
                "",
                _machine("containers.toolkit_version"),
                "containers.toolkit_version",
            ),
            Key("docker", "version", "docker", "", _engine("docker"), "containers.engines"),
            Key("podman", "version", "podman", "", _engine("podman"), "containers.engines"),
        ),
    ),
}

# Sections whose keys are not fixed: formats that Tensor Cores must be proven for, and packages of the target.
TENSOR_CORES, PROVEN = "tensor_cores", "proven"
FORMATS = ("tf32", "fp16", "bf16", "int8", "fp8")
PACKAGES = "packages"
# Of [[gpus]] and [[nics]], beside their keys.
COUNT, NAME = "count", "name"
