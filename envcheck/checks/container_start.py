"""How a container gets its GPUs, in the terms of what started it: docker, podman, Kubernetes, LXC …"""

from __future__ import annotations

from ..data.engine_errors import EngineError
from .driver_state import branch, container, driver_version
from .reading import SnapshotView, known
from .system_commands import in_engine, on_system, systemctl
from .verdicts import Remedy, fill_in

LINKS = "sudo nvidia-ctk system create-dev-char-symlinks --create-all"
COMPATIBLE = (
    "helm upgrade --reuse-values --set compatWithCPUManager=true nvdp nvdp/nvidia-device-plugin"
    " -n nvidia-device-plugin"
)
DEFAULT_IN_CONTAINERD = (
    "sudo nvidia-ctk runtime configure --runtime=containerd --set-as-default"
    f" && {systemctl('restart', 'containerd')}"
)
ALLOCATABLE = (
    "kubectl get nodes -o"
    r" custom-columns='NODE:.metadata.name,GPUS:.status.allocatable.nvidia\.com/gpu'"
)
RUNTIME_CLASS = (
    "kubectl explain pod.spec.runtimeClassName   # nvidia, where that is not the node's default"
)
_POD = (
    " In Kubernetes: the pod asks for them (a limit of nvidia.com/gpu), and the node's engine starts it with"
    " NVIDIA's runtime, as its default or by runtimeClassName."
)


def start_with_gpus(view: SnapshotView, text: str) -> Remedy:
    """``text``, and how the container that the facts were gathered in is started with its GPUs."""
    commands = in_engine(view, "gpus")
    if not in_pod(view):
        return Remedy(text, commands)
    # What owns a pod would start the same one again.
    owner = f"kubectl edit deployment {fill_in('NAME', 'the deployment')}"
    edit = f"{owner}   # its template's resources: limits: nvidia.com/gpu: 1"
    return Remedy(text + _POD, [ALLOCATABLE, edit, *commands, RUNTIME_CLASS, DEFAULT_IN_CONTAINERD])


def lost_gpus(view: SnapshotView) -> Remedy:
    """For a container whose device nodes are there and may not be opened any more."""
    if in_pod(view):
        return Remedy(
            "Delete the pod, so that it is created again: nothing brings the GPUs back into a running one."
            " Then end what takes them away. On a node whose CPU manager has the policy static, the kubelet"
            " rewrites the control groups of running containers: NVIDIA's device plugin needs"
            " compatWithCPUManager=true (its --pass-device-specs) there. Elsewhere it is systemd's"
            " daemon-reload, which needs the nodes' links in /dev/char.",
            [
                *in_engine(view, "gpus"),
                "# on the host: sudo cat /var/lib/kubelet/cpu_manager_state   # policyName",
                COMPATIBLE,
                LINKS,
            ],
        )
    return Remedy(
        "Create the container again: nothing brings the GPUs back into a running one, which loses them when"
        " systemd reloads its units and rewrites the device rules. Links in /dev/char on the host, or GPUs by"
        " CDI, end that. Where a new one fails from its start, see whether the host's"
        " /etc/nvidia-container-runtime/config.toml says no-cgroups = true: only a rootless engine needs it.",
        [*in_engine(view, "gpus"), LINKS],
    )


def mended(view: SnapshotView, error: EngineError, image: str) -> Remedy:
    """What helps against an error of the engine's, in this system's words."""
    number = branch(known(driver_version(view)[0]))
    commands: list[str] = []
    for command in error.commands:
        own = command.startswith("@")
        commands += (
            on_system(view, command[1:], branch=number)
            if own
            else [command.replace("{image}", image)]
        )
    return Remedy(error.remedy, commands)


def in_pod(view: SnapshotView) -> bool:
    return container(view) == "kubernetes"
