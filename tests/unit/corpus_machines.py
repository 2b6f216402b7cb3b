"""The healthy machines that the corpus' reports start from, and circumstances that many of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fleet
import h100
import modes_machine
import modes_well
from build import document, ok
from modes_parts import no_cuda, no_libcuda, no_module, no_smi
from msgspec.structs import replace
from targets import dist, interpreter, packages
from whole import ABSENT, in_container, kernel, whole

from envcheck.facts.base import Probe
from envcheck.facts.snapshot import Document, Snapshot
from envcheck.facts.target import Environment


def changed(snapshot: Snapshot, **probes: Any) -> Snapshot:
    """The Snapshot with these sections of the machine; ``target`` is the target's document."""
    target: Document | None = probes.pop("target", snapshot.target)
    wrapped = {
        name: probe if probe is None or isinstance(probe, Probe) else ok(probe)
        for name, probe in probes.items()
    }
    return replace(snapshot, machine=replace(snapshot.machine, **wrapped), target=target)


def container(**changes: Any) -> Snapshot:
    """Inside a container with all GPUs: nothing of the host's packages, modules and services is there."""
    facts = kernel(
        services=[],
        driver_packages=[],
        module_files=[],
        dkms=ABSENT,
        kernels_installed=ABSENT,
        reboot_required=ABSENT,
        log=ABSENT,
    )
    return whole(host=in_container(**changes), kernel=facts, containers=None)


def conda() -> Snapshot:
    snapshot = modes_well.desktop()
    assert snapshot.target is not None
    prefix = "<home-1>/miniconda3/envs/tf"
    facts = interpreter(
        kind="conda", prefix=prefix, base_prefix=prefix, executable=f"{prefix}/bin/python"
    )
    return replace(snapshot, target=replace(snapshot.target, interpreter=ok(facts)))


def cards(name: str, count: int = 2) -> Snapshot:
    """A machine with several cards of one kind, and NCCL's wheel in a virtual environment."""
    (product,) = (one for one in fleet.PRODUCTS if one.name == name)
    target = document(
        "path:/venv",
        interpreter=interpreter(),
        environment=Environment(),
        packages=packages(dist("nvidia-nccl-cu12", "2.29.3")),
    )
    return fleet.machine(product, count=count, target=target)


def image_on_wsl() -> Snapshot:
    """WSL, with a container of an image in the place of an environment."""
    seen = modes_well.wsl()
    inside = document("image:my/image:1", interpreter=interpreter())
    return replace(seen, target=inside)


MACHINES: dict[str, Callable[[], Snapshot]] = {
    "8 x H100": whole,
    "GeForce": modes_well.desktop,
    "T4": modes_well.idle_t4,
    "WSL": modes_well.wsl,
    "image on WSL": image_on_wsl,
    "VM": modes_well.guest,
    "MIG": modes_well.mig_in_use,
    "container": container,
    "pod": lambda: container(container="kubernetes"),
    "LXC": lambda: container(container="lxc"),
    "conda": conda,
    "forward compatibility": modes_well.forward_compatible,
    "2 x RTX 6000 Ada": lambda: cards("NVIDIA RTX 6000 Ada Generation"),
    "2 x RTX 5090": lambda: cards("NVIDIA GeForce RTX 5090"),
    "4 x V100": lambda: cards("Tesla V100-PCIE-16GB", 4),
}


def mismatch(snapshot: Snapshot) -> Snapshot:
    """What NVML, nvidia-smi, libcuda and the framework say where library and module differ."""
    seen = modes_machine.mismatch()
    names = ("nvml", "nvidia_smi", "cuda")
    return changed(
        snapshot, target=seen.target, **{name: getattr(seen.machine, name) for name in names}
    )


def unloaded(snapshot: Snapshot) -> Snapshot:
    """The nvidia module is not loaded: no driver holds the GPUs, no node is there."""
    facts = snapshot.machine.kernel.facts  # type: ignore[union-attr]
    facts = replace(
        facts,
        modules=[],
        driver_version=ABSENT,
        driver_flavour=ABSENT,
        device_nodes=[],
        services=[],
    )
    pci = snapshot.machine.pci.facts  # type: ignore[union-attr]
    devices = [replace(device, driver=ABSENT) for device in pci.devices]
    return changed(snapshot, kernel=facts, pci=replace(pci, devices=devices), **no_module())


def no_uvm(snapshot: Snapshot) -> Snapshot:
    """nvidia-uvm is not loaded: nvidia-smi works, cuInit does not."""
    facts = snapshot.machine.kernel.facts  # type: ignore[union-attr]
    kept = [node for node in facts.device_nodes if "uvm" not in node.path]
    modules = [module for module in facts.modules if module.name != "nvidia_uvm"]
    return changed(
        snapshot,
        kernel=replace(facts, modules=modules, device_nodes=kept),
        cuda=no_cuda(999, "CUDA_ERROR_UNKNOWN"),
        target=modes_machine.no_uvm().target,
    )


def no_device(snapshot: Snapshot) -> Snapshot:
    """cuInit finds no GPU (error 100), and neither does the framework."""
    return changed(
        snapshot,
        cuda=no_cuda(100, "CUDA_ERROR_NO_DEVICE"),
        target=modes_machine.forbidden()["target"],
    )


def nvml_unknown_error(snapshot: Snapshot) -> Snapshot:
    """NVML, nvidia-smi and cuInit say "unknown error": a device cgroup closes nodes that are 0666."""
    facts = snapshot.machine.kernel.facts  # type: ignore[union-attr]
    closed = [replace(node, usable=False) for node in facts.device_nodes]
    return changed(
        snapshot,
        kernel=replace(facts, device_nodes=closed),
        nvml=h100.no_driver(999, "Unknown Error"),
        nvidia_smi=no_smi(255, "Failed to initialize NVML: Unknown Error"),
        cuda=no_cuda(999, "CUDA_ERROR_UNKNOWN"),
        target=modes_machine.no_uvm().target,
    )


def without_libcuda(snapshot: Snapshot) -> Snapshot:
    """The loader finds no libcuda.so.1 and no libnvidia-ml.so.1; nvidia-smi is not there."""
    seen = modes_machine.bare()
    names = ("nvml", "nvidia_smi")
    return changed(
        snapshot,
        target=seen.target,
        cuda=no_libcuda(),
        **{name: getattr(seen.machine, name) for name in names},
    )


def no_fabric(snapshot: Snapshot) -> Snapshot:
    """The fabric manager does not run: no GPU has joined the fabric, and cuInit says error 802."""
    facts = snapshot.machine.kernel.facts  # type: ignore[union-attr]
    services = [
        replace(one, running=False) if one.name == "nvidia-fabricmanager" else one
        for one in facts.services
    ]
    gpus = [
        h100.gpu(n, fabric_state="Not Started", fabric_status=ABSENT, fabric_health=ABSENT)
        for n in range(h100.COUNT)
    ]
    return changed(
        snapshot,
        kernel=replace(facts, services=services),
        nvml=h100.nvml(gpus),
        nvidia_smi=h100.smi(gpus),
        cuda=no_cuda(802, "CUDA_ERROR_SYSTEM_NOT_READY"),
        target=modes_machine.no_uvm().target,
    )


# Each changes what a report's machine says in several places at once; ``differs`` comes after it.
CIRCUMSTANCES: dict[str, Callable[[Snapshot], Snapshot]] = {
    "mismatch": mismatch,
    "module not loaded": unloaded,
    "no uvm": no_uvm,
    "no device": no_device,
    "unknown error": nvml_unknown_error,
    "no libcuda": without_libcuda,
    "no fabric": no_fabric,
}
