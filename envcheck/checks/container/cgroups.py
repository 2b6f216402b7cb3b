"""Checks on who lets a container's processes open the GPUs' device nodes: cgroups."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.containers import Engine, Kubernetes
from ...facts.kernel import DeviceNode
from ...facts.missing import NotKnown, Skip
from ...facts.view import SnapshotView, facts_of, need
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.subjects import about
from ..containers import (
    CDI_GENERATE,
    DOCKER_GPUS_BY_CDI,
    NO_DEVICE_NODES,
    NO_GPU,
    at_least,
    containers_of,
    evidence,
    need_gpus,
    node_evidence,
    nvidia_specs,
    rootful_docker,
    serving,
)
from ..registry import check
from ..system_commands import in_engine, on_system

CGROUP_V2 = (1, 8)  # libnvidia-container knows it from here on
UDEV_RULE = (
    'echo \'ACTION=="add", DEVPATH=="/bus/pci/drivers/nvidia",'
    ' RUN+="/usr/bin/nvidia-ctk system create-dev-char-symlinks --create-all"\''
    " | sudo tee /lib/udev/rules.d/71-nvidia-dev-char.rules"
)


@check(
    "CTR-003",
    title="Running containers keep their GPUs",
    problem="running containers can lose their GPUs",
    about="With the systemd cgroup driver, a `systemctl daemon-reload` (which every package upgrade may do)"
    " makes systemd rewrite a container's device rules, and it finds device nodes by their links in"
    " /dev/char. NVIDIA's driver makes none, so a container that got its GPU from NVIDIA's hook loses it in"
    " the middle of a run: 'Failed to initialize NVML: Unknown Error', with all well on the host. Judged by"
    " the engine's cgroup driver, the links, and whether a CDI specification offers the other way. On a"
    " node of Kubernetes a CPU manager with the policy static does the same to pods at any time, unless"
    " NVIDIA's device plugin names the devices itself (compatWithCPUManager).",
    sources=(
        "nvidia-container-toolkit#48",
        "nvidia-container-toolkit#1227",
        "nvidia-docker#1730, #1671",
        "nvidia-docker#1618 (CPU manager)",
    ),
    follows=NO_DEVICE_NODES,
)
def containers_keep_gpus(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)
    node = containers_of(view).kubernetes
    if node is not None and known(node.engine) in ("containerd", "cri-o"):
        yield from _pods(view, node)
    try:
        engine = rootful_docker(view)
    except Skip:
        if node is None:
            raise
        return
    driver = need(engine.cgroup_driver, "docker's cgroup driver")
    if driver != "systemd":
        yield Passed(f"docker's cgroup driver is {driver}")
        return
    if "nvidia" not in (known(engine.runtimes) or []) and not known(containers_of(view).hook_path):
        raise Skip("docker has no GPU runtime")
    unlinked = _unlinked(view)
    if not unlinked:
        yield Passed("/dev/char has the links")
    elif nvidia_specs(view):
        by_cdi = at_least(known(engine.server_version), DOCKER_GPUS_BY_CDI)
        yield Passed(
            "by CDI" + ("" if by_cdi else ", with --device nvidia.com/gpu=all, not with --gpus")
        )
    else:
        yield _trap(view, engine, unlinked)


def _pods(view: SnapshotView, node: Kubernetes) -> Iterator[Verdict]:
    """A node whose pods get their GPUs by NVIDIA's runtime."""
    static = known(node.cpu_manager_policy) == "static"
    systemd = known(node.cgroup_driver) == "systemd"
    unlinked = _unlinked(view) if systemd and not static else []
    if not known(node.nvidia_runtimes) or not (static or unlinked):
        yield Passed("pods: nothing is seen that takes their GPUs away")
    elif known(node.passes_devices) is True:
        yield Passed("pods: NVIDIA's device plugin names the devices itself")
    elif known(node.passes_devices) is None:
        why = "whether NVIDIA's device plugin names the devices itself is not known"
        yield Unjudged("skipped", why, about("engine", "kubelet"))
    else:
        yield _rewritten(view) if static else _trap_of_pods(view, node, unlinked)


def _rewritten(view: SnapshotView) -> Finding:
    return Finding(
        "warn",
        "Running pods lose their GPUs: the kubelet's CPU manager has the policy static and rewrites the"
        " control groups of containers, and NVIDIA's device plugin does not name the devices to it.",
        subjects=about("engine", "kubelet"),
        evidence=[
            node_evidence(view, "cpu_manager_policy"),
            node_evidence(view, "passes_devices"),
        ],
        remedy=Remedy(
            "Let the device plugin name the devices (--pass-device-specs), and create the pods again.",
            [
                "helm upgrade nvdp nvidia-device-plugin --repo https://nvidia.github.io/k8s-device-plugin"
                " -n nvidia-device-plugin --reuse-values --set compatWithCPUManager=true",
                *in_engine(view, "gpus"),
            ],
        ),
    )


def _trap_of_pods(view: SnapshotView, node: Kubernetes, unlinked: list[DeviceNode]) -> Finding:
    return Finding(
        "warn",
        "Running pods lose their GPUs at the next `systemctl daemon-reload`:"
        f" {known(node.engine)} uses the systemd cgroup driver, and /dev/char has no link to"
        f" {unlinked[0].path}.",
        subjects=about("engine", known(node.engine) or ""),
        evidence=[
            node_evidence(view, "cgroup_driver"),
            view.evidence(
                "machine.kernel.device_nodes", ", ".join(n.path for n in unlinked) + ": no link"
            ),
        ],
        remedy=Remedy(
            "Create the links, now and at every boot; pods that run already must be created again.",
            ["sudo nvidia-ctk system create-dev-char-symlinks --create-all", UDEV_RULE],
        ),
    )


def _unlinked(view: SnapshotView) -> list[DeviceNode]:
    """NVIDIA's device nodes without a link in /dev/char; raises Skip where nobody looked."""
    kernel = facts_of(view.machine.kernel, "device nodes")
    nodes = [
        n for n in need(kernel.device_nodes, "device nodes") if n.path.startswith("/dev/nvidia")
    ]
    if all(known(node.char_link) is None for node in nodes):
        raise Skip("links in /dev/char: not known")
    return [node for node in nodes if known(node.char_link) is False]


def _trap(view: SnapshotView, engine: Engine, unlinked: list[DeviceNode]) -> Finding:
    return Finding(
        "warn",
        "Running docker containers lose their GPUs at the next `systemctl daemon-reload`: docker uses the"
        f" systemd cgroup driver, and /dev/char has no link to {unlinked[0].path}.",
        subjects=about("engine", engine.name),
        evidence=[
            evidence(view, engine, "cgroup_driver"),
            view.evidence(
                "machine.kernel.device_nodes", ", ".join(n.path for n in unlinked) + ": no link"
            ),
            view.evidence("machine.containers.cdi_specs"),
        ],
        remedy=Remedy(
            "Create the links, now and at every boot, or give containers their GPUs by CDI (--device"
            " nvidia.com/gpu=all); containers that run already must be created again.",
            [
                "sudo nvidia-ctk system create-dev-char-symlinks --create-all",
                UDEV_RULE,
                CDI_GENERATE,
            ],
        ),
    )


@check(
    "CTR-005",
    title="The toolkit's no-cgroups setting fits the engine",
    problem="the toolkit's no-cgroups does not fit the engine",
    about="With no-cgroups = true in the toolkit's configuration, NVIDIA's hook leaves a container's device"
    " rules alone. A rootless engine needs that, for it may not write them; under docker's own root server"
    " it leaves the container without access: 'Failed to initialize NVML: Unknown Error' from the start."
    " Both cannot be had with one configuration, except by CDI. Judged where docker would call the hook:"
    " not in CDI mode, not in WSL2, and not where docker's --gpus goes by CDI.",
    sources=(
        "nvidia-container-toolkit#381",
        "nvidia-container-toolkit#85",
        "libnvidia-container#154",
    ),
    follows=NO_GPU,
)
def no_cgroups_fits(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)
    containers = containers_of(view)
    need(containers.toolkit_config, "the toolkit's configuration")
    docker = next((e for e in serving(view) if e.name == "docker"), None)
    if docker is None or known(docker.rootless) is None:
        raise Skip("no docker server answers")
    mode = known(containers.toolkit_mode)
    by_cdi = nvidia_specs(view) and at_least(known(docker.server_version), DOCKER_GPUS_BY_CDI)
    host = view.machine.host
    wsl = host is not None and host.facts is not None and known(host.facts.wsl) is True
    if mode == "cdi" or by_cdi or wsl:
        raise Skip("docker's containers get their GPUs without the hook's device rules")
    off = known(containers.toolkit_no_cgroups) is True
    if off and not known(docker.rootless):
        yield _misfit(view, docker, "false")
    elif not off and known(docker.rootless):
        by_itself = at_least(known(containers.toolkit_version), (1, 18))
        if by_itself is None:
            raise NotKnown("whether the toolkit's version sets no-cgroups for a rootless docker")
        if by_itself:
            yield Passed("no-cgroups = false, which this toolkit handles by itself")
        else:
            yield _misfit(view, docker, "true")
    else:
        yield Passed(f"no-cgroups = {'true' if off else 'false'}")


def _misfit(view: SnapshotView, docker: Engine, wanted: str) -> Finding:
    message = (
        "The toolkit's no-cgroups is true and docker's server runs as root: its containers see GPUs that"
        " they may not open (NVML: Unknown Error)."
        if wanted == "false"
        else "docker runs rootless and the toolkit's no-cgroups is not true: NVIDIA's hook may not write"
        " device rules, and no container with a GPU starts."
    )
    return Finding(
        "warn",
        message,
        subjects=about("engine", docker.name),
        evidence=[
            view.evidence("machine.containers.toolkit_no_cgroups"),
            evidence(view, docker, "rootless"),
        ],
        remedy=Remedy(
            "Change the setting, or give containers their GPUs by CDI, which does without it.",
            [
                f"sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups={wanted} --in-place",
                CDI_GENERATE,
            ],
        ),
    )


@check(
    "CTR-008",
    title="NVIDIA's container library knows this system's control groups",
    problem="NVIDIA's container library is too old for cgroup v2",
    about="libnvidia-container gives a container the right to open the GPUs' device nodes by its control"
    " group, and knows version 2 of those since 1.8. An older one on a system with cgroup v2 (Debian 11 and"
    " newer, Ubuntu 21.10 and newer, RHEL 9) ends every container with GPUs: 'nvidia-container-cli: container"
    " error: cgroup subsystem devices not found'. Judged by its version and the system's control groups,"
    " where docker, podman's hook or Kubernetes call it.",
    sources=(
        "libnvidia-container#111; nvidia-docker#1447, #1660",
        "k8s-device-plugin#273 (a maintainer: 1.8.0 has cgroup v2)",
    ),
    follows=NO_GPU,
)
def library_knows_cgroups(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)
    containers = containers_of(view)
    version = need(containers.cli_version, "libnvidia-container")
    callers = [engine.name for engine in containers.engines if engine.name == "docker"]
    if known(containers.toolkit_mode) == "cdi" or not (
        callers or known(containers.oci_hooks) or containers.kubernetes
    ):
        raise Skip("no engine here calls libnvidia-container for device rules")
    new_enough = at_least(version, CGROUP_V2)
    if new_enough is None:
        raise NotKnown("libnvidia-container's version")
    if new_enough:
        yield Passed(f"libnvidia-container {version}")
        return
    host = facts_of(view.machine.host, "control groups")
    if need(host.cgroup_version, "the version of control groups") != 2:
        yield Passed(f"libnvidia-container {version}, cgroup v{host.cgroup_version}")
    elif known(containers.toolkit_no_cgroups) is True:
        yield Passed("no-cgroups = true: containers are given the device nodes by hand")
    else:
        yield _too_old(view, version)


def _too_old(view: SnapshotView, version: str) -> Finding:
    node = containers_of(view).kubernetes
    service = "containerd" if node is not None and known(node.engine) == "containerd" else "docker"
    return Finding(
        "warn",
        f"libnvidia-container {version} does not know cgroup v2, which this system has, and 1.8 is the first"
        " that does: no container with a GPU starts ('cgroup subsystem devices not found').",
        evidence=[
            view.evidence("machine.containers.cli_version"),
            view.evidence("machine.host.cgroup_version"),
        ],
        remedy=Remedy(
            "Upgrade NVIDIA's container toolkit. Where that cannot be, boot with cgroup v1"
            " (systemd.unified_cgroup_hierarchy=0), or set no-cgroups = true in"
            " /etc/nvidia-container-runtime/config.toml and give containers the device nodes by --device.",
            [
                "nvidia-container-cli --version",
                *on_system(view, "container-toolkit"),
                f"sudo systemctl restart {service}",
            ],
        ),
    )
