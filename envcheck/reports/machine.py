"""The machine and the target in one sentence each, from the Snapshot alone."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

import msgspec

from ..facts.base import Probe, Unavailable, known
from ..facts.gpu import Gpu
from ..facts.host import Host
from ..facts.kernel import Kernel
from ..facts.missing import CannotJudge
from ..facts.pci import PciDevice
from ..facts.snapshot import Document, Snapshot
from ..facts.view import view_of

T = TypeVar("T")

# Their distributions, where the framework itself was not imported: normalised names, in this order.
FRAMEWORK_DISTRIBUTIONS = {
    "nvidia-tensorflow": "tensorflow",
    "tensorflow": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "torch": "torch",
    "jax": "jax",
}


# Of more models than these, the rest of the GPUs are counted.
MODELS = 8


class GpuGroup(msgspec.Struct, frozen=True):
    """GPUs of one name."""

    count: int
    name: str


class MachineDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader wants to know of the machine first. null: not known, or not there.

    ``gpus`` is null where nobody could say how many there are; an empty list is a machine without.
    """

    summary: str
    origin: str
    collected_at: str
    hostname: str | None
    os: str | None
    kernel: str | None
    architecture: str | None
    container: str | None
    driver: str | None
    cuda: str | None  # newest CUDA that the driver supports
    gpus: list[GpuGroup] | None


class TargetDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The environment that was looked at. ``frameworks`` maps a framework to its version."""

    summary: str
    location: str
    collected_at: str
    python: str | None
    frameworks: dict[str, str]


def facts(probe: Probe[T] | None) -> T | None:
    """A probe's facts, or None where it was not asked for or failed."""
    return None if probe is None else probe.facts


def describe_machine(snapshot: Snapshot) -> MachineDescription:
    document = snapshot.machine
    host = facts(document.host) or Host()
    gpus = gpu_groups(snapshot)
    driver = driver_version(document)
    pieces = [_system(host), _driver_phrase(document, driver), gpu_phrase(gpus)]
    return MachineDescription(
        summary=", ".join(piece for piece in pieces if piece),
        origin=document.origin,
        collected_at=document.collected_at,
        hostname=known(host.hostname),
        os=_os(host),
        kernel=known(host.kernel),
        architecture=known(host.architecture),
        container=known(host.container),
        driver=driver,
        cuda=cuda_version(document),
        gpus=gpus,
    )


def short(machine: MachineDescription) -> str:
    """What a line has room for: "Ubuntu 22.04.4 LTS, driver 535.104.05, 8 × H100 80GB HBM3" """
    system = machine.os or ""
    if machine.container:
        system = f"{system or 'a system'} in a {machine.container} container"
    driver = f"driver {machine.driver}" if machine.driver else ""
    return ", ".join(filter(None, (system, driver, short_gpus(machine.gpus))))


def short_gpus(groups: list[GpuGroup] | None) -> str:
    """As gpu_phrase, without the maker's name."""
    if not groups:
        return gpu_phrase(groups)
    return gpu_phrase([GpuGroup(g.count, g.name.removeprefix("NVIDIA ")) for g in groups])


def describe_target(document: Document | None) -> TargetDescription | None:
    if document is None:
        return None
    interpreter = facts(document.interpreter)
    frameworks = framework_versions(document)
    pieces = [document.location]
    if interpreter is not None:
        pieces.append(f"Python {interpreter.version}")
    pieces += [f"{name} {version}" for name, version in frameworks.items()]
    return TargetDescription(
        summary=", ".join(pieces),
        location=document.location,
        collected_at=document.collected_at,
        python=None if interpreter is None else interpreter.version,
        frameworks=frameworks,
    )


def gpu_groups(snapshot: Snapshot) -> list[GpuGroup] | None:
    """The machine's GPUs by name: as the driver knows them, else as they stand on the PCI bus.

    WSL shows no GPU on its PCI bus, whatever there is.
    """
    try:
        driver_gpus = view_of(snapshot).gpus
    except CannotJudge:
        driver_gpus = None
    pci, host = facts(snapshot.machine.pci), facts(snapshot.machine.host)
    wsl = host is not None and known(host.wsl)
    devices = None if pci is None or wsl else known(pci.devices)
    cards = None if devices is None else [device for device in devices if device.kind == "gpu"]
    if driver_gpus:
        names = [_gpu_model(gpu) for gpu in driver_gpus]
    elif cards is not None:
        names = [_card_model(card) for card in cards]
    elif driver_gpus is not None:
        names = []
    else:
        return None
    return [GpuGroup(count, name) for name, count in Counter(names).items()]


def gpu_phrase(groups: list[GpuGroup] | None) -> str:
    """ "8 × NVIDIA H100 80GB HBM3", of the first few names; "" where nobody knows."""
    if groups is None:
        return ""
    if not groups:
        return "no NVIDIA GPU"
    parts = [f"{group.count} × {group.name}" for group in groups[:MODELS]]
    if others := sum(group.count for group in groups[MODELS:]):
        parts.append(f"{others} others")
    return ", ".join(parts)


def driver_version(document: Document) -> str | None:
    """The driver that runs: as NVML says, else the loaded module, else nvidia-smi."""
    for probe in (document.nvml, document.kernel, document.nvidia_smi):
        found = None if probe is None or probe.facts is None else known(probe.facts.driver_version)
        if found:
            return found
    return None


def cuda_version(document: Document) -> str | None:
    """The newest CUDA that the driver supports, by NVML, nvidia-smi or libcuda."""
    for probe in (document.nvml, document.nvidia_smi):
        found = None if probe is None or probe.facts is None else known(probe.facts.cuda_version)
        if found:
            return found
    cuda = facts(document.cuda)
    return None if cuda is None else known(cuda.driver_api_version)


def framework_versions(document: Document) -> dict[str, str]:
    """Each framework's version as it says when imported, else as its distribution says."""
    versions: dict[str, str] = {}
    for probe in (document.tensorflow, document.torch, document.jax):
        framework = facts(probe)
        if framework is not None and (version := known(framework.version)):
            versions[framework.name] = version
    packages = facts(document.packages)
    for distribution in packages.distributions if packages is not None else []:
        name = FRAMEWORK_DISTRIBUTIONS.get(distribution.normalized)
        if name is not None and not distribution.shadowed:
            versions.setdefault(name, distribution.version)
    return versions


def _system(host: Host) -> str:
    words = " ".join(part for part in (_os(host), known(host.architecture)) if part)
    if container := known(host.container):
        words = f"{words} in a {container} container" if words else f"a {container} container"
    return words


def _os(host: Host) -> str | None:
    parts = (
        [known(host.os_name)]
        if known(host.os_name)
        else [known(host.os_id), known(host.os_version)]
    )
    name = " ".join(part for part in parts if part)
    return (f"{name} (WSL)" if known(host.wsl) else name) if name else None


def _driver_phrase(document: Document, driver: str | None) -> str:
    if driver is None:
        kernel = facts(document.kernel) or Kernel()
        missing = kernel.driver_version
        absent = isinstance(missing, Unavailable) and missing.unavailable == "absent"
        return "no NVIDIA driver loaded" if absent else ""
    cuda = cuda_version(document)
    return f"driver {driver} (CUDA {cuda})" if cuda else f"driver {driver}"


def _gpu_model(gpu: Gpu) -> str:
    return known(gpu.name) or "NVIDIA GPU of unknown name"


def _card_model(card: PciDevice) -> str:
    return known(card.name) or f"NVIDIA GPU {card.device_id}"
