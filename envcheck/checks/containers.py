"""What the checks on container engines share."""

from __future__ import annotations

import re

from ..facts.base import ProgramSetting
from ..facts.containers import CdiSpec, Containers, Engine, Kubernetes
from ..facts.evidence import Evidence
from ..facts.missing import Skip
from ..facts.view import SnapshotView, fact, facts_of
from ..findings.commands import TRADE
from ..findings.shell import word
from .reading import is_absent, known

# Failures that explain why no GPU can be handed out.
NO_GPU = ("PCI-001",)

KIND = "nvidia.com/gpu"
# What SELinux's container_use_devices costs.
DEVICES_FOR_CONTAINERS = (
    f"{TRADE}SELinux then lets every container on the machine use the devices that it is given."
)


def generate_cdi(path: str) -> str:
    return f"sudo nvidia-ctk cdi generate --output={word(path)}"


CDI_GENERATE = generate_cdi("/etc/cdi/nvidia.yaml")
PODMAN_CDI = (4, 1)
DOCKER_CDI = (28, 2)  # on by default from here on
DOCKER_GPUS_BY_CDI = (29, 2)  # --gpus asks for CDI devices from here on


def containers_of(view: SnapshotView) -> Containers:
    return facts_of(view.machine.containers, "container engines")


def setting(view: SnapshotView, name: str) -> ProgramSetting | None:
    found = known(containers_of(view).settings) or []
    return next((one for one in found if one.name == name), None)


def need_gpus(view: SnapshotView) -> None:
    """Raises Skip unless this machine has an NVIDIA GPU that its own containers could use."""
    containers_of(view)
    devices = fact(view.machine.pci, "devices")
    if any(d.kind == "gpu" and known(d.driver) != "vfio-pci" for d in devices or []):
        return
    # In WSL2, no PCI device shows them.
    if any(fact(one, "gpu_count") for one in (view.machine.nvml, view.machine.nvidia_smi)):
        return
    if devices is None:
        raise Skip("whether there is an NVIDIA GPU here is not known")
    raise Skip("no NVIDIA GPU that a container could be given")


def serving(view: SnapshotView) -> list[Engine]:
    """The engines on this machine that would start a container; raises Skip where there are none."""
    engines = containers_of(view).engines
    if not engines:
        raise Skip("no container engine is installed")
    local = [engine for engine in engines if known(engine.remote) is not True]
    if not local:
        raise Skip("the container engine's server is not on this machine")
    asked = ("docker", "podman")
    ready = [one for one in local if one.name not in asked or known(one.server_version) is not None]
    if not ready:
        raise Skip("no container engine answers")
    return ready


def rootful_docker(view: SnapshotView) -> Engine:
    """The docker on this machine whose server runs as root; raises Skip where there is none."""
    for engine in serving(view):
        if engine.name == "docker" and known(engine.rootless) is False:
            return engine
    raise Skip("no docker server that runs as root answers")


def nvidia_specs(view: SnapshotView) -> list[CdiSpec]:
    """The CDI specifications of NVIDIA's GPUs, and those that could not be read."""
    specs = known(containers_of(view).cdi_specs) or []
    return [one for one in specs if known(one.kind) in (KIND, None) and not is_absent(one.kind)]


def engine_named(engines: list[Engine], name: str) -> Engine:
    """The engine of this name; raises Skip where it is not among them."""
    found = next((engine for engine in engines if engine.name == name), None)
    if found is None:
        raise Skip(f"{name} is not installed, or does not answer")
    return found


def docker_uses_cdi(engine: Engine) -> bool:
    return (
        known(engine.cdi_enabled) is True
        or at_least(known(engine.server_version), DOCKER_CDI) is True
    )


def evidence(view: SnapshotView, engine: Engine, field: str, value: object = None) -> Evidence:
    position = containers_of(view).engines.index(engine)
    shown = getattr(engine, field) if value is None else value
    return view.evidence(f"machine.containers.engines[{position}].{field}", shown)


def at_least(version: str | None, least: tuple[int, int]) -> bool | None:
    """Whether a version ("4.9.4-rhel") is ``least`` or newer; None where it is not known."""
    match = re.match(r"(\d+)\.(\d+)", version or "")
    return None if match is None else (int(match.group(1)), int(match.group(2))) >= least


def kubernetes_node(view: SnapshotView) -> Kubernetes:
    """The node's facts; raises Skip where no kubelet is seen to run."""
    node = containers_of(view).kubernetes
    if node is None:
        raise Skip("no kubelet is seen to run here")
    return node


def node_evidence(view: SnapshotView, field: str, value: object = None) -> Evidence:
    shown = getattr(kubernetes_node(view), field) if value is None else value
    return view.evidence(f"machine.containers.kubernetes.{field}", shown)
