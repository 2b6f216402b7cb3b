"""Facts about container engines and how GPUs would get into a container."""

from __future__ import annotations

from typing import Literal

from .base import NOT_COLLECTED, Facts, Maybe, ProgramSetting


class Engine(Facts, frozen=True, kw_only=True):
    name: str  # "docker", "podman", "apptainer", "singularity", "enroot"
    path: str
    version: Maybe[str] = NOT_COLLECTED  # of the client
    server_version: Maybe[str] = NOT_COLLECTED  # unavailable with the reason why it did not answer
    rootless: Maybe[bool] = NOT_COLLECTED
    cgroup_driver: Maybe[str] = NOT_COLLECTED  # "systemd", "cgroupfs"
    cgroup_version: Maybe[str] = NOT_COLLECTED
    runtimes: Maybe[list[str]] = NOT_COLLECTED
    missing_runtimes: list[str] = []  # docker: NVIDIA's that it names and that are not there
    server_path: Maybe[str] = NOT_COLLECTED  # docker: dockerd
    default_runtime: Maybe[str] = NOT_COLLECTED
    storage_driver: Maybe[str] = NOT_COLLECTED
    storage_path: Maybe[str] = NOT_COLLECTED
    storage_free_mib: Maybe[int] = NOT_COLLECTED
    desktop: Maybe[bool] = NOT_COLLECTED  # Docker Desktop, which runs in a virtual machine
    remote: Maybe[bool] = NOT_COLLECTED  # the server runs on another machine, or in a VM of its own
    cdi_enabled: Maybe[bool] = NOT_COLLECTED  # docker: the server names directories of CDI specs
    cdi_spec_dirs: Maybe[list[str]] = NOT_COLLECTED  # as it says itself, or is configured
    selinux: Maybe[bool] = NOT_COLLECTED  # it gives containers SELinux labels of their own
    init_path: Maybe[str] = NOT_COLLECTED  # the program that --init puts in front
    # It may raise a container's resource limits over its own: CAP_SYS_RESOURCE.
    raises_limits: Maybe[bool] = NOT_COLLECTED


class CdiSpec(Facts, frozen=True, kw_only=True):
    path: str
    kind: Maybe[str] = NOT_COLLECTED  # "nvidia.com/gpu"
    version: Maybe[str] = NOT_COLLECTED
    devices: Maybe[list[str]] = NOT_COLLECTED
    driver_versions: Maybe[list[str]] = NOT_COLLECTED  # in the names of the driver's libraries
    missing_paths: Maybe[list[str]] = NOT_COLLECTED  # host paths it names that are not there
    other_numbers: list[str] = []  # "/dev/nvidia-uvm: 510 instead of 509"


class UnreadRuntime(Facts, frozen=True, kw_only=True):
    """Where NVIDIA's runtime is configured and the engine does not look."""

    path: str
    reason: Literal["section", "not-imported"]
    section: str = ""  # the one that the file's version does not have


class OfferedDevices(Facts, frozen=True, kw_only=True):
    resource: str  # "nvidia.com/gpu"
    count: int


class Kubernetes(Facts, frozen=True, kw_only=True):
    """A node: the engine behind its kubelet, and what the kubelet has to hand out."""

    distribution: str  # "kubelet", "k3s", "rke2", "k0s", "microk8s"
    engine: Maybe[str] = NOT_COLLECTED  # "containerd", "cri-o", "docker"
    # of containerd, as configured
    config: Maybe[str] = NOT_COLLECTED
    runtimes: Maybe[list[str]] = NOT_COLLECTED
    nvidia_runtimes: Maybe[list[str]] = NOT_COLLECTED  # those whose program is NVIDIA's
    missing_runtimes: list[str] = []  # NVIDIA's that it names and that are not there
    unread: list[UnreadRuntime] = []
    default_runtime: Maybe[str] = NOT_COLLECTED
    cgroup_driver: Maybe[str] = NOT_COLLECTED
    cdi_enabled: Maybe[bool] = NOT_COLLECTED
    cdi_spec_dirs: Maybe[list[str]] = NOT_COLLECTED
    # NVIDIA's device plugin names the devices itself: the kubelet's changes then leave them.
    passes_devices: Maybe[bool] = NOT_COLLECTED
    cpu_manager_policy: Maybe[str] = NOT_COLLECTED  # the kubelet's: "none", "static"
    offered: Maybe[list[OfferedDevices]] = NOT_COLLECTED  # NVIDIA's, by device plugins


class BrokenFile(Facts, frozen=True, kw_only=True):
    """A configuration file that cannot be read as what it is."""

    path: str
    owner: str  # "docker", "toolkit", "containerd", "crio"
    error: str


class LoggedError(Facts, frozen=True, kw_only=True):
    """What an engine or NVIDIA's tools wrote to a log where a container got no GPU."""

    path: str
    text: str


class Containers(Facts, frozen=True, kw_only=True):
    engines: list[Engine] = []
    toolkit_path: Maybe[str] = NOT_COLLECTED  # nvidia-ctk
    toolkit_version: Maybe[str] = NOT_COLLECTED
    cli_path: Maybe[str] = NOT_COLLECTED  # nvidia-container-cli, of libnvidia-container
    cli_version: Maybe[str] = NOT_COLLECTED
    hook_path: Maybe[str] = (
        NOT_COLLECTED  # nvidia-container-runtime-hook: docker's --gpus before CDI
    )
    oci_hooks: Maybe[list[str]] = NOT_COLLECTED  # hooks.d files that call it: podman before CDI
    toolkit_config: Maybe[str] = NOT_COLLECTED  # path of config.toml
    toolkit_mode: Maybe[str] = NOT_COLLECTED  # "auto", "legacy", "cdi"
    toolkit_no_cgroups: Maybe[bool] = NOT_COLLECTED
    cdi_specs: Maybe[list[CdiSpec]] = NOT_COLLECTED
    settings: Maybe[list[ProgramSetting]] = (
        NOT_COLLECTED  # "docker.default-runtime", "dockerd.hosts"
    )
    broken_files: list[BrokenFile] = []
    errors: list[LoggedError] = []
    kubernetes: Kubernetes | None = None  # where a kubelet is seen to run
