"""Checks on a node of Kubernetes: does its engine know NVIDIA's runtime, has the kubelet GPUs to hand out."""

from __future__ import annotations

from ...facts.containers import Kubernetes, OfferedDevices, UnreadRuntime
from .. import containers as shared
from ..declared import declared_causes
from ..reading import Nvml, SnapshotView, Unavailable, facts_or, known, need
from ..system_commands import on_system, systemctl
from ..verdicts import Finding, Passed, Remedy, Verdict, Verdicts, about, check, word

CAUSE = declared_causes(__name__)

_DOCKER_DEFAULT = (
    "sudo nvidia-ctk runtime configure --runtime=docker --set-as-default",
    systemctl("restart", "docker"),
)
_BY_HAND = ("sudoedit /etc/docker/daemon.json", systemctl("restart", "docker"))
_PLUGIN = (
    "helm upgrade -i nvdp nvidia-device-plugin --repo https://nvidia.github.io/k8s-device-plugin"
    " -n nvidia-device-plugin --create-namespace"
)
_LOGS = "kubectl logs -n nvidia-device-plugin -l app.kubernetes.io/name=nvidia-device-plugin"
_IF_NONE = f"{_PLUGIN}   # if the cluster has none yet"
# The CDI kinds of NVIDIA's device plugin and GPU operator: where they wrote some, no runtime is needed.
_PLUGINS_OWN = ("k8s.device-plugin.nvidia.com/", "runtime.nvidia.com/", "management.nvidia.com/")


@check("CTR-009")
def engine_uses_nvidia(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    node = shared.kubernetes_node(view)
    engine = need(node.engine, "the kubelet's engine")
    if engine == "docker":
        yield _docker(view)
        return
    if engine == "cri-o":
        yield _crio(view, node)
        return
    need(node.runtimes, f"the runtimes of {engine}")
    nvidia = need(node.nvidia_runtimes, f"NVIDIA's runtimes in {engine}")
    default = known(node.default_runtime) or ""
    if node.missing_runtimes:
        config = known(node.config) or ""
        yield CAUSE["nvidia-runtime-gone"].found(
            about("engine", engine),
            [shared.node_evidence(view, "missing_runtimes")],
            commands=[
                *on_system(view, "container-toolkit"),
                f"sudo grep -n nvidia {word(config)}",
                f"sudo nvidia-ctk runtime configure --runtime={engine} --set-as-default",
                systemctl("restart", engine),
            ],
            engine=engine,
            program=node.missing_runtimes[0],
            config=config,
        )
    elif default in nvidia:
        yield Passed(f"{engine}: {default}, its default runtime, is NVIDIA's")
    elif nvidia:
        yield Passed(f"{engine}: {nvidia[0]}, which pods ask for by runtimeClassName")
    elif way := _other_way(view, node):
        yield Passed(f"{engine}: {way}")
    else:
        yield CAUSE["no-nvidia-runtime"].found(
            about("engine", engine),
            [shared.node_evidence(view, field) for field in ("runtimes", "config")],
            advice=_configure(view, node, engine),
            engine=engine,
            config=known(node.config) or "",
            unread="".join(map(_unread, node.unread[:1])),
        )


def _docker(view: SnapshotView) -> Verdict:
    containers = shared.containers_of(view)
    engine = shared.engine_named(containers.engines, "docker")
    default = need(engine.default_runtime, "docker's default runtime")
    if "nvidia" in default:
        return Passed(f"docker's default runtime is {default}")
    there = known(containers.toolkit_path) or "nvidia" in (known(engine.runtimes) or [])
    install = [] if there and not engine.missing_runtimes else on_system(view, "container-toolkit")
    return CAUSE["docker-default-runtime"].found(
        about("engine", "docker"),
        [shared.evidence(view, engine, field) for field in ("default_runtime", "runtimes")],
        commands=[
            *install,
            *(_DOCKER_DEFAULT if known(containers.toolkit_path) or install else _BY_HAND),
        ],
        default=default,
    )


def _crio(view: SnapshotView, node: Kubernetes) -> Verdict:
    settings = need(shared.containers_of(view).settings, "CRI-O's configuration")
    runtimes = [one for one in settings if one.name.startswith("crio.crio.runtime.runtimes.")]
    paths = [one.value for one in runtimes if one.name.endswith(".runtime_path")]
    hooks = known(shared.containers_of(view).oci_hooks)
    way = next((path for path in paths if "nvidia-container-runtime" in path), "")
    way = way or _other_way(view, node) or ("NVIDIA's OCI hook" if hooks else "")
    if way:
        return Passed(f"cri-o: {way}")
    return CAUSE["no-nvidia-runtime"].found(
        about("engine", "cri-o"),
        [view.evidence("machine.containers.settings", ", ".join(paths) or "none of a runtime")],
        advice=_configure(view, node, "crio"),
        engine="CRI-O",
        config="/etc/crio/crio.conf.d",
        unread="",
    )


def _other_way(view: SnapshotView, node: Kubernetes) -> str:
    """How GPUs come into pods without NVIDIA's runtime; "" where nothing shows that they do."""
    if sum(one.count for one in known(node.offered) or []):
        return "the kubelet has GPUs to hand out, by CDI"
    if isinstance(node.offered, Unavailable) and node.offered.unavailable == "not-supported":
        return "NVIDIA's DRA driver hands out the GPUs"
    specs = known(shared.containers_of(view).cdi_specs) or []
    return "by CDI" if any((known(s.kind) or "").startswith(_PLUGINS_OWN) for s in specs) else ""


def _unread(one: UnreadRuntime) -> str:
    if one.reason == "not-imported":
        return f" {one.path} has one, which nothing imports."
    return f" {one.path} has one under {one.section}, which is not read in a file of its version."


def _configure(view: SnapshotView, node: Kubernetes, engine: str) -> Remedy:
    installed = known(shared.containers_of(view).toolkit_path)
    commands = [] if installed else on_system(view, "container-toolkit")
    name, config = node.distribution, known(node.config) or ""
    if name in ("k3s", "rke2"):
        service = "k3s" if name == "k3s" else "rke2-agent   # on a server: rke2-server"
        restart, grep = systemctl("restart", service), f"sudo grep nvidia {word(config)}"
        return Remedy(
            f"{name} looks for NVIDIA's runtime when it starts: install the toolkit and start it again. Pods,"
            " and the device plugin, then ask for it by runtimeClassName: nvidia.",
            [*commands, restart, grep, f"{_PLUGIN} --set runtimeClassName=nvidia"],
        )
    if any(one.reason == "not-imported" for one in node.unread):
        folder = node.unread[0].path.rpartition("/")[0]
        return Remedy(
            f'Let {config} import it: imports = ["{folder}/*.toml"], above its first table. Every'
            " pod gets it where it is the default (default_runtime_name), else by runtimeClassName: nvidia.",
            [f"sudoedit {word(config)}", systemctl("restart", engine), _IF_NONE],
        )
    if engine == "crio":
        return Remedy(
            "Configure NVIDIA's runtime for it, and see that the file lies in /etc/crio/crio.conf.d, where"
            " CRI-O looks. Without --set-as-default pods ask for it by runtimeClassName: nvidia.",
            [
                *commands,
                "sudo nvidia-ctk runtime configure --runtime=crio --set-as-default",
                "ls /etc/crio/crio.conf.d",
                systemctl("restart", "crio"),
            ],
        )
    where = "" if config.startswith("/etc/containerd/") else f" --config={word(config)}"
    configure = f"sudo nvidia-ctk runtime configure --runtime={engine}{where} --set-as-default"
    return Remedy(
        "Configure NVIDIA's runtime for this engine. As the default it serves the device plugin and every"
        " pod; without --set-as-default both need a RuntimeClass, and runtimeClassName: nvidia.",
        [*commands, configure, systemctl("restart", engine), _IF_NONE],
    )


@check("CTR-010")
def kubelet_has_gpus(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    node = shared.kubernetes_node(view)
    offered = need(node.offered, "what device plugins registered with the kubelet")
    named = ", ".join(f"{one.resource}: {one.count}" for one in offered if one.count)
    if named:
        yield _all_of_them(view, offered) or Passed(named)
        return
    nvidia, default = known(node.nvidia_runtimes) or [], known(node.default_runtime)
    by_class, option = "", ""
    if nvidia and default not in nvidia:
        by_class = (
            f" {known(node.engine)} knows NVIDIA's runtime as {nvidia[0]}, and {default} is its default: the"
            " plugin itself must ask for it."
        )
        option = f" --set runtimeClassName={word(nvidia[0])}"
    shown = shared.node_evidence(view, "offered", "none of NVIDIA's")
    yield CAUSE["no-gpu-offered"].found(
        evidence=[shown, shared.node_evidence(view, "default_runtime")],
        commands=[
            "kubectl get pods -A -o wide | grep nvidia-device-plugin",
            _LOGS,
            f"{_PLUGIN}{option}   # if the cluster has none yet",
        ],
        by_class=by_class,
    )


def _all_of_them(view: SnapshotView, offered: list[OfferedDevices]) -> Finding | None:
    """Whether whole GPUs are missing among those that are offered; parts of GPUs cannot be counted."""
    gpus = known(facts_or(view.machine.nvml, Nvml).gpus) or []
    count = sum(one.count for one in offered)
    whole = [one.resource for one in offered if one.count] == ["nvidia.com/gpu"]
    if not whole or count >= len(gpus) or any(known(gpu.mig_enabled) for gpu in gpus):
        return None
    return CAUSE["fewer-gpus-offered"].found(
        evidence=[
            shared.node_evidence(view, "offered", f"nvidia.com/gpu: {count}"),
            view.evidence("machine.nvml.gpu_count", len(gpus)),
        ],
        commands=[
            _LOGS,
            "sudo dmesg | grep Xid",
            "kubectl rollout restart -n nvidia-device-plugin daemonset",
        ],
        count=count,
        gpus=len(gpus),
    )
