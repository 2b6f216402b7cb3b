"""Checks on NVIDIA's container library: device rules, control groups, and the ldconfig that it runs."""

from __future__ import annotations

from ...facts.containers import Kubernetes
from ..container_start import LINKS
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
from ..driver_state import on_wsl
from ..reading import NotKnown, Skip, SnapshotView, facts_of, known, need
from ..system_commands import in_engine, on_system
from ..verdicts import (
    Evidence,
    Finding,
    Passed,
    Unjudged,
    Verdict,
    Verdicts,
    about,
    about_file,
    check,
    warn,
)

_CGROUP_V2 = (1, 8)  # libnvidia-container knows it from here on
UDEV_RULE = (
    'echo \'ACTION=="add", DEVPATH=="/bus/pci/drivers/nvidia",'
    ' RUN+="/usr/bin/nvidia-ctk system create-dev-char-symlinks --create-all"\''
    " | sudo tee /lib/udev/rules.d/71-nvidia-dev-char.rules"
)

RELOAD = warn(
    "gpus-lost-on-reload",
    "running containers can lose their GPUs",
    "Running {containers} lose their GPUs at the next `systemctl daemon-reload`: {engine} uses the"
    " systemd cgroup driver, and /dev/char has no link to {node}.",
    "Create the links, now and at every boot{or_cdi}; {containers} that run already must be created"
    " again.",
)
REWRITTEN = warn(
    "gpus-lost-to-cpu-manager",
    "running pods lose their GPUs",
    "Running pods lose their GPUs: the kubelet's CPU manager has the policy static and rewrites the"
    " control groups of containers, and NVIDIA's device plugin does not name the devices to it.",
    "Let the device plugin name the devices (--pass-device-specs), and create the pods again.",
)


@check(
    "CTR-003",
    title="Running containers keep their GPUs",
    causes=[RELOAD, REWRITTEN],
    about="With the systemd cgroup driver, a `systemctl daemon-reload` (which every package upgrade may do)"
    " makes systemd rewrite a container's device rules by the links in /dev/char. NVIDIA's driver makes"
    " none, so a container that got its GPU from NVIDIA's hook loses it in the middle of a run: 'Failed to"
    " initialize NVML: Unknown Error'.",
    sources=["nvidia-container-toolkit#48, #1227; nvidia-docker#1730, #1671, #1618"],
    follows=NO_DEVICE_NODES,
)
def containers_keep_gpus(view: SnapshotView) -> Verdicts:
    need_gpus(view)
    node = containers_of(view).kubernetes
    if node is not None and known(node.engine) in ("containerd", "cri-o"):
        yield _pods(view, node)
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
        shown = [evidence(view, engine, "cgroup_driver")]
        yield _trap(
            view, "docker", unlinked, [*shown, view.evidence("machine.containers.cdi_specs")]
        )


def _pods(view: SnapshotView, node: Kubernetes) -> Verdict:
    """A node whose pods get their GPUs by NVIDIA's runtime."""
    static = known(node.cpu_manager_policy) == "static"
    systemd = known(node.cgroup_driver) == "systemd"
    unlinked = _unlinked(view) if systemd and not static else []
    if not known(node.nvidia_runtimes) or not (static or unlinked):
        return Passed("pods: nothing is seen that takes their GPUs away")
    if known(node.passes_devices) is True:
        return Passed("pods: NVIDIA's device plugin names the devices itself")
    if known(node.passes_devices) is None:
        why = "whether NVIDIA's device plugin names the devices itself is not known"
        return Unjudged("skipped", why, about("engine", "kubelet"))
    if not static:
        shown = [node_evidence(view, "cgroup_driver")]
        return _trap(view, known(node.engine) or "", unlinked, shown)
    return REWRITTEN.found(
        about("engine", "kubelet"),
        [node_evidence(view, name) for name in ("cpu_manager_policy", "passes_devices")],
        commands=[
            "helm upgrade nvdp nvidia-device-plugin --repo https://nvidia.github.io/k8s-device-plugin"
            " -n nvidia-device-plugin --reuse-values --set compatWithCPUManager=true",
            *in_engine(view, "gpus"),
        ],
    )


def _unlinked(view: SnapshotView) -> list[str]:
    """NVIDIA's device nodes without a link in /dev/char; raises Skip where nobody looked."""
    kernel = facts_of(view.machine.kernel, "device nodes")
    nodes = [
        n for n in need(kernel.device_nodes, "device nodes") if n.path.startswith("/dev/nvidia")
    ]
    if all(known(node.char_link) is None for node in nodes):
        raise Skip("links in /dev/char: not known")
    return [node.path for node in nodes if known(node.char_link) is False]


def _trap(view: SnapshotView, engine: str, unlinked: list[str], shown: list[Evidence]) -> Finding:
    docker = engine == "docker"
    links = view.evidence("machine.kernel.device_nodes", ", ".join(unlinked) + ": no link")
    by_cdi = ", or give containers their GPUs by CDI (--device nvidia.com/gpu=all)"
    return RELOAD.found(
        about("engine", engine),
        [*shown, links],
        commands=[LINKS, UDEV_RULE, *([CDI_GENERATE] if docker else [])],
        containers="docker containers" if docker else "pods",
        engine=engine,
        node=unlinked[0],
        or_cdi=by_cdi if docker else "",
    )


_SETTING = (
    "Change the setting, or give containers their GPUs by CDI, which works without device rules."
)
_SET = "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups={} --in-place"
NO_RULES = warn(
    "no-cgroups-under-root",
    "the toolkit's no-cgroups does not fit docker",
    "The toolkit's no-cgroups is true and docker's server runs as root: its containers see GPUs that"
    " they may not open (NVML: Unknown Error).",
    _SETTING,
    _SET.format("false"),
    CDI_GENERATE,
)
RULES = warn(
    "cgroups-when-rootless",
    "the toolkit's no-cgroups does not fit docker",
    "docker runs rootless and the toolkit's no-cgroups is not true: NVIDIA's hook may not write"
    " device rules, and no container with a GPU starts.",
    _SETTING,
    _SET.format("true"),
    CDI_GENERATE,
)


@check(
    "CTR-005",
    title="The toolkit's no-cgroups setting fits the engine",
    causes=[NO_RULES, RULES],
    about="With no-cgroups = true in the toolkit's configuration, NVIDIA's hook does not touch a"
    " container's device rules. A rootless engine needs that, for it may not write them; under docker's own"
    " root server the container has no access: 'Failed to initialize NVML: Unknown Error' from the start.",
    sources=["nvidia-container-toolkit#381, #85; libnvidia-container#154"],
    follows=NO_GPU,
)
def no_cgroups_fits(view: SnapshotView) -> Verdicts:
    need_gpus(view)
    containers = containers_of(view)
    need(containers.toolkit_config, "the toolkit's configuration")
    docker = next((e for e in serving(view) if e.name == "docker"), None)
    if docker is None or known(docker.rootless) is None:
        raise Skip("no docker server answers")
    by_cdi = nvidia_specs(view) and at_least(known(docker.server_version), DOCKER_GPUS_BY_CDI)
    if known(containers.toolkit_mode) == "cdi" or by_cdi or on_wsl(view):
        raise Skip("docker's containers get their GPUs without the hook's device rules")
    off, rootless = known(containers.toolkit_no_cgroups) is True, known(docker.rootless)
    cause = NO_RULES if off and not rootless else None
    if rootless and not off:
        by_itself = at_least(known(containers.toolkit_version), (1, 18))
        if by_itself is None:
            raise NotKnown("whether the toolkit's version sets no-cgroups for a rootless docker")
        cause = None if by_itself else RULES
    if cause is None:
        yield Passed(f"no-cgroups = {'true' if off else 'false'}")
        return
    shown = view.evidence("machine.containers.toolkit_no_cgroups")
    yield cause.found(about("engine", "docker"), [shown, evidence(view, docker, "rootless")])


OLD_LIBRARY = warn(
    "library-before-cgroup-v2",
    "NVIDIA's container library is too old for cgroup v2",
    "libnvidia-container {version} does not know cgroup v2, which this system has, and 1.8 is the"
    " first that does: no container with a GPU starts ('cgroup subsystem devices not found').",
    "Upgrade NVIDIA's container toolkit. Where that is not possible, boot with cgroup v1"
    " (systemd.unified_cgroup_hierarchy=0), or set no-cgroups = true in"
    " /etc/nvidia-container-runtime/config.toml and give containers the device nodes by --device.",
)


@check(
    "CTR-008",
    title="NVIDIA's container library knows this system's control groups",
    causes=[OLD_LIBRARY],
    about="libnvidia-container gives a container the right to open the GPUs' device nodes by its control"
    " group, and knows version 2 of those since 1.8. With an older one on a system with cgroup v2 (Debian"
    " 11, Ubuntu 21.10, RHEL 9 and newer) no container with GPUs starts.",
    sources=["libnvidia-container#111; nvidia-docker#1447, #1660; k8s-device-plugin#273"],
    follows=NO_GPU,
)
def library_knows_cgroups(view: SnapshotView) -> Verdicts:
    need_gpus(view)
    containers = containers_of(view)
    version = need(containers.cli_version, "libnvidia-container")
    docker = any(engine.name == "docker" for engine in containers.engines)
    called = docker or bool(known(containers.oci_hooks)) or containers.kubernetes is not None
    if known(containers.toolkit_mode) == "cdi" or not called:
        raise Skip("no engine here calls libnvidia-container for device rules")
    new_enough = at_least(version, _CGROUP_V2)
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
        node = containers.kubernetes
        by_containerd = node is not None and known(node.engine) == "containerd"
        fields = ("containers.cli_version", "host.cgroup_version")
        yield OLD_LIBRARY.found(
            evidence=[view.evidence(f"machine.{field}") for field in fields],
            commands=[
                "nvidia-container-cli --version",
                *on_system(view, "container-toolkit"),
                f"sudo systemctl restart {'containerd' if by_containerd else 'docker'}",
            ],
            version=version,
        )


NO_LDCONFIG = warn(
    "ldconfig-missing",
    "the toolkit's ldconfig is missing",
    "The toolkit is told to run {path}, which is not on this machine: no container with a GPU starts"
    " (ldcache error).",
    "Name the ldconfig that this system has.",
)


@check(
    "CTR-013",
    title="The toolkit's ldconfig is there",
    causes=[NO_LDCONFIG],
    about="NVIDIA's container library runs the host's ldconfig on a container's files, by the path in its"
    " configuration. Ubuntu calls it /sbin/ldconfig.real, others /sbin/ldconfig: with the wrong one each"
    " start with a GPU ends in 'ldcache error: open failed'.",
    sources=["nvidia-docker#614, #1399"],
    follows=NO_GPU,
)
def ldconfig_is_there(view: SnapshotView) -> Verdicts:
    need_gpus(view)
    containers = containers_of(view)
    need(containers.toolkit_config, "the toolkit's configuration")
    path = known(containers.toolkit_ldconfig)
    there = known(containers.toolkit_ldconfig_there)
    if path is None or there is None:
        yield Passed("the toolkit's configuration names no ldconfig of the host's")
    elif known(containers.toolkit_mode) == "cdi":
        raise Skip("the toolkit is in CDI mode, which works without ldconfig")
    elif there:
        yield Passed(path)
    else:
        right = "@/sbin/ldconfig" if path.endswith(".real") else "@/sbin/ldconfig.real"
        yield NO_LDCONFIG.found(
            about_file(path[1:]),
            [view.evidence("machine.containers.toolkit_ldconfig")],
            commands=[
                f"sudo nvidia-ctk config --set nvidia-container-cli.ldconfig={right} --in-place",
                "ls -l /sbin/ldconfig*",
            ],
            path=path[1:],
        )
