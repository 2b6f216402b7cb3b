"""The machine and the target in one sentence each, from the Snapshot alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from ..facts.base import Probe, Unavailable, known
from ..facts.host import Host
from ..facts.kernel import Kernel
from ..facts.snapshot import Document, Snapshot
from ..facts.target import Framework
from ..facts.view import or_else, view_of

T = TypeVar("T")

# Their distributions, where the framework itself was not imported: normalised names, in this order.
FRAMEWORK_DISTRIBUTIONS = {
    "nvidia-tensorflow": "tensorflow",
    "tensorflow": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "torch": "torch",
    "jax": "jax",
}
MODELS = 8  # of more, the rest of the GPUs are counted


class GpuGroup(msgspec.Struct, frozen=True):
    """GPUs of one name."""

    count: int
    name: str


class MachineDescription(msgspec.Struct, frozen=True, kw_only=True):
    """null: not known, or not there. ``gpus``: an empty list is a machine without."""

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


def frameworks(document: Document) -> Iterator[Framework]:
    """Those that were looked for."""
    for probe in (document.tensorflow, document.torch, document.jax):
        if (framework := facts(probe)) is not None:
            yield framework


def describe_machine(snapshot: Snapshot) -> MachineDescription:
    document = snapshot.machine
    host = facts(document.host) or Host()
    gpus, driver, cuda = gpu_groups(snapshot), _driver_version(document), _cuda_version(document)
    os, architecture, container = _os(host), known(host.architecture), known(host.container)
    system = _in_container(" ".join(filter(None, (os, architecture))), container)
    return MachineDescription(
        summary=", ".join(
            filter(None, (system, _driver_phrase(document, driver, cuda), gpu_phrase(gpus)))
        ),
        origin=document.origin,
        collected_at=document.collected_at,
        hostname=known(host.hostname),
        os=os,
        kernel=known(host.kernel),
        architecture=architecture,
        container=container,
        driver=driver,
        cuda=cuda,
        gpus=gpus,
    )


def short(machine: MachineDescription) -> str:
    """What a line has room for: "Ubuntu 22.04.4 LTS, driver 535.104.05, 8 × H100 80GB HBM3" """
    system = _in_container(machine.os or "", machine.container)
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
    python = None if interpreter is None else interpreter.version
    versions = _framework_versions(document)
    pieces = [document.location, *([f"Python {python}"] if python else [])]
    return TargetDescription(
        summary=", ".join([*pieces, *map(" ".join, versions.items())]),
        location=document.location,
        collected_at=document.collected_at,
        python=python,
        frameworks=versions,
    )


def gpu_groups(snapshot: Snapshot) -> list[GpuGroup] | None:
    """The machine's GPUs by name: as the driver knows them, else as they are on the PCI bus, which shows none
    in WSL."""
    listed = or_else(lambda: view_of(snapshot).gpus, None)
    unnamed = "NVIDIA GPU of unknown name"
    names = None if listed is None else [known(gpu.name) or unnamed for gpu in listed]
    pci, host = facts(snapshot.machine.pci), facts(snapshot.machine.host)
    wsl = host is not None and known(host.wsl)
    devices = None if pci is None or wsl else known(pci.devices)
    if not names and devices is not None:
        cards = [device for device in devices if device.kind == "gpu"]
        names = [known(card.name) or f"NVIDIA GPU {card.device_id}" for card in cards]
    if names is None:
        return None
    return [GpuGroup(count, name) for name, count in Counter(names).items()]


def gpu_phrase(groups: list[GpuGroup] | None) -> str:
    """ "8 × NVIDIA H100 80GB HBM3", of the first few names; "" where they are not known."""
    if groups is None:
        return ""
    if not groups:
        return "no NVIDIA GPU"
    parts = [f"{group.count} × {group.name}" for group in groups[:MODELS]]
    if others := sum(group.count for group in groups[MODELS:]):
        parts.append(f"{others} others")
    return ", ".join(parts)


def _driver_version(document: Document) -> str | None:
    """The driver that runs: as NVML says, else the loaded module, else nvidia-smi."""
    found = (facts(document.nvml), facts(document.kernel), facts(document.nvidia_smi))
    versions = (known(one.driver_version) for one in found if one is not None)
    return next(filter(None, versions), None)


def _cuda_version(document: Document) -> str | None:
    """The newest CUDA that the driver supports, by NVML, nvidia-smi or libcuda."""
    found = (facts(document.nvml), facts(document.nvidia_smi))
    cuda = facts(document.cuda)
    versions = [known(one.cuda_version) for one in found if one is not None]
    versions += [] if cuda is None else [known(cuda.driver_api_version)]
    return next(filter(None, versions), None)


def _framework_versions(document: Document) -> dict[str, str]:
    """Each framework's version as it says when imported, else as its distribution says."""
    versions: dict[str, str] = {}
    for framework in frameworks(document):
        if version := known(framework.version):
            versions[framework.name] = version
    packages = facts(document.packages)
    for distribution in packages.distributions if packages is not None else []:
        name = FRAMEWORK_DISTRIBUTIONS.get(distribution.normalized)
        if name is not None and not distribution.shadowed:
            versions.setdefault(name, distribution.version)
    return versions


def _in_container(system: str, container: str | None) -> str:
    if not container:
        return system
    vowel = container.startswith(("a", "e", "i", "o", "u", "lxc"))
    place = f"{'an' if vowel else 'a'} {container} container"
    return f"{system} in {place}" if system else place


def _os(host: Host) -> str | None:
    parts = (known(host.os_id), known(host.os_version))
    name = known(host.os_name) or " ".join(filter(None, parts))
    return (f"{name} (WSL)" if known(host.wsl) else name) if name else None


def _driver_phrase(document: Document, driver: str | None, cuda: str | None) -> str:
    if driver is None:
        missing = (facts(document.kernel) or Kernel()).driver_version
        absent = isinstance(missing, Unavailable) and missing.unavailable == "absent"
        return "no NVIDIA driver loaded" if absent else ""
    return f"driver {driver} (CUDA {cuda})" if cuda else f"driver {driver}"
