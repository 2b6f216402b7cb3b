"""Checks on device rules and control groups: by systemd's cgroup driver and NVIDIA's container library."""

from __future__ import annotations

from .. import containers as shared
from ..container_start import COMPATIBLE, LINKS
from ..driver_state import on_wsl
from ..reading import NotKnown, Skip, SnapshotView, facts_of, known, need
from ..verdicts import Params, Passed, Verdicts, about, check, warn

UDEV_RULE = (
    'echo \'ACTION=="add", DEVPATH=="/bus/pci/drivers/nvidia",'
    ' RUN+="/usr/bin/nvidia-ctk system create-dev-char-symlinks --create-all"\''
    " | sudo tee /lib/udev/rules.d/71-nvidia-dev-char.rules"
)

RELOAD = warn(
    "gpus-lost-on-reload",
    "running containers can lose their GPUs",
    "Running {containers} lose their GPUs at the next `systemctl daemon-reload`: {engine} uses the systemd"
    " cgroup driver, and /dev/char has no link to {node}.",
    "Create the links, now and at every boot, or give containers their GPUs by CDI (--device"
    " nvidia.com/gpu=all); {containers} that run already must be created again.",
    LINKS,
    UDEV_RULE,
    shared.CDI_GENERATE,
)

STATIC = RELOAD.variant(
    "gpus-lost-to-cpu-manager",
    sentence="Running pods lose their GPUs ('NVML: Unknown Error'): the kubelet's CPU manager has the policy"
    " static and rewrites their control groups, and NVIDIA's device plugin is not seen to name the device"
    " nodes to it.",
    remedy="Let NVIDIA's device plugin pass the device nodes to the kubelet (compatWithCPUManager, its"
    " PASS_DEVICE_SPECS), or give the CPU manager another policy; then create the pods again.",
    commands=(COMPATIBLE, "sudo cat /var/lib/kubelet/cpu_manager_state   # policyName"),
    source="mattshma/bigdata#150; NVIDIA/nvidia-docker#1618; k8s-device-plugin, PASS_DEVICE_SPECS",
)


@check(
    "CTR-003",
    title="Running containers keep their GPUs",
    causes=[RELOAD, STATIC],
    about="With the systemd cgroup driver, a `systemctl daemon-reload` (which every package upgrade may do)"
    " makes systemd rewrite a container's device rules by the links in /dev/char.",
    sources=["nvidia-container-toolkit#48, #1227; nvidia-docker#1730, #1671, #1618"],
    follows=(*shared.NO_DEVICE_NODES, "CTR-014"),
)
def containers_keep_gpus(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    containers = shared.containers_of(view)
    node = containers.kubernetes
    passes = node is not None and known(node.passes_devices) is True
    if node is not None and known(node.cpu_manager_policy) == "static" and not passes:
        fields = ("cpu_manager_policy", "passes_devices")
        why = [shared.node_evidence(view, name) for name in fields]
        yield STATIC.found(about("engine", known(node.engine) or "kubelet"), why)
        return
    if node is not None and known(node.engine) in ("containerd", "cri-o"):
        engine, driver = known(node.engine) or "", node.cgroup_driver
        hooked = bool(known(node.nvidia_runtimes)) and known(node.passes_devices) is not True
        shown, users = shared.node_evidence(view, "cgroup_driver"), "pods"
    else:
        docker = shared.rootful_docker(view)
        engine, driver = "docker", docker.cgroup_driver
        hooked = "nvidia" in (known(docker.runtimes) or []) or bool(known(containers.hook_path))
        shown, users = shared.evidence(view, docker, "cgroup_driver"), "docker containers"
    driver = need(driver, f"{engine}'s cgroup driver")
    if driver != "systemd":
        yield Passed(f"{engine}'s cgroup driver is {driver}")
        return
    if not hooked:
        raise Skip(f"{engine} has no GPU runtime that writes device rules")
    unlinked = _unlinked(view)
    if not unlinked:
        yield Passed("/dev/char has the links")
    elif engine == "docker" and shared.nvidia_specs(view):
        yield Passed("by CDI, with --device nvidia.com/gpu=all")
    else:
        links = view.evidence("machine.kernel.device_nodes", ", ".join(unlinked) + ": no link")
        params: Params = {"containers": users, "engine": engine, "node": unlinked[0]}
        yield RELOAD.found(about("engine", engine), [shown, links], **params)


def _unlinked(view: SnapshotView) -> list[str]:
    kernel = facts_of(view.machine.kernel, "device nodes")
    nodes = [
        n for n in need(kernel.device_nodes, "device nodes") if n.path.startswith("/dev/nvidia")
    ]
    if all(known(node.char_link) is None for node in nodes):
        raise Skip("links in /dev/char: not known")
    return [node.path for node in nodes if known(node.char_link) is False]


_SET = "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups={} --in-place"
NO_RULES = warn(
    "no-cgroups-under-root",
    "the toolkit's no-cgroups does not fit docker",
    "The toolkit's no-cgroups is true and docker's server runs as root: its containers see GPUs that they may"
    " not open ({words}).",
    "Change the setting, or give containers their GPUs by CDI, which works without device rules.",
    _SET.format("false"),
    f"# or, by CDI: {shared.CDI_GENERATE}",
    follows=shared.NO_GPU,
)
RULES = NO_RULES.variant(
    "cgroups-when-rootless",
    sentence="docker runs rootless and the toolkit's no-cgroups is not true: NVIDIA's hook may not write"
    " device rules, and no container with a GPU starts.",
    commands=[_SET.format("true"), f"# or, by CDI: {shared.CDI_GENERATE}"],
    follows=None,
)


@check(
    "CTR-005",
    title="The toolkit's no-cgroups setting fits the engine",
    causes=[NO_RULES, RULES],
    about="With no-cgroups = true in the toolkit's configuration, NVIDIA's hook does not touch a container's"
    " device rules.",
    sources=["nvidia-container-toolkit#381, #85; libnvidia-container#154"],
    follows=(*shared.NO_GPU, "CTR-011"),
)
def no_cgroups_fits(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    containers = shared.containers_of(view)
    need(containers.toolkit_config, "the toolkit's configuration")
    docker = shared.engine_named(shared.serving(view), "docker")
    rootless = need(docker.rootless, "whether docker is rootless")
    specs = shared.nvidia_specs(view)
    by_cdi = specs and shared.at_least(known(docker.server_version), shared.DOCKER_GPUS_BY_CDI)
    off = known(containers.toolkit_no_cgroups) is True
    # On WSL the hook writes a rule for one device, /dev/dxg.
    if known(containers.toolkit_mode) == "cdi" or by_cdi or (on_wsl(view) and not off):
        raise Skip("docker's containers get their GPUs without the hook's device rules")
    by_itself = shared.at_least(known(containers.toolkit_version), (1, 18))
    if rootless and not off and by_itself is None:
        raise NotKnown("whether the toolkit's version sets no-cgroups for a rootless docker")
    if off == rootless or (rootless and by_itself):
        yield Passed(f"no-cgroups = {'true' if off else 'false'}")
        return
    shown = view.evidence("machine.containers.toolkit_no_cgroups")
    evidence = [shown, shared.evidence(view, docker, "rootless")]
    words = "GPU access blocked by the operating system" if on_wsl(view) else "NVML: Unknown Error"
    yield (NO_RULES if off else RULES).found(about("engine", "docker"), evidence, words=words)
