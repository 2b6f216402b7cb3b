"""Checks on device rules and control groups: by systemd's cgroup driver and NVIDIA's container library."""

from __future__ import annotations

from .. import containers as shared
from ..declared import declared_causes
from ..driver_state import on_wsl
from ..reading import NotKnown, Skip, SnapshotView, facts_of, known, need
from ..verdicts import Params, Passed, Verdicts, about, check

CAUSE = declared_causes(__name__)

UDEV_RULE = (
    'echo \'ACTION=="add", DEVPATH=="/bus/pci/drivers/nvidia",'
    ' RUN+="/usr/bin/nvidia-ctk system create-dev-char-symlinks --create-all"\''
    " | sudo tee /lib/udev/rules.d/71-nvidia-dev-char.rules"
)


@check("CTR-003")
def containers_keep_gpus(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    containers = shared.containers_of(view)
    node = containers.kubernetes
    passes = node is not None and known(node.passes_devices) is True
    if node is not None and known(node.cpu_manager_policy) == "static" and not passes:
        fields = ("cpu_manager_policy", "passes_devices")
        why = [shared.node_evidence(view, name) for name in fields]
        yield CAUSE["gpus-lost-to-cpu-manager"].found(
            about("engine", known(node.engine) or "kubelet"), why
        )
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
        yield CAUSE["gpus-lost-on-reload"].found(about("engine", engine), [shown, links], **params)


def _unlinked(view: SnapshotView) -> list[str]:
    kernel = facts_of(view.machine.kernel, "device nodes")
    nodes = [
        n for n in need(kernel.device_nodes, "device nodes") if n.path.startswith("/dev/nvidia")
    ]
    if all(known(node.char_link) is None for node in nodes):
        raise Skip("links in /dev/char: not known")
    return [node.path for node in nodes if known(node.char_link) is False]


@check("CTR-005")
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
    yield (CAUSE["no-cgroups-under-root"] if off else CAUSE["cgroups-when-rootless"]).found(
        about("engine", "docker"), evidence, words=words
    )
