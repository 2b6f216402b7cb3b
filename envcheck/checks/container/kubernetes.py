"""Checks on a node of Kubernetes: does its engine know NVIDIA's runtime, has the kubelet GPUs to hand out."""

from __future__ import annotations

from ...facts.containers import Kubernetes
from ..containers import (
    NO_DEVICE_NODES,
    containers_of,
    evidence,
    kubernetes_node,
    need_gpus,
    node_evidence,
)
from ..reading import Skip, SnapshotView, Unavailable, known, need
from ..system_commands import on_system
from ..verdicts import (
    Cause,
    Finding,
    Passed,
    Remedy,
    Verdict,
    Verdicts,
    about,
    about_file,
    check,
    warn,
    word,
)

_DOCKER_DEFAULT = (
    "sudo nvidia-ctk runtime configure --runtime=docker --set-as-default",
    "sudo systemctl restart docker",
)
_PLUGIN = (
    "helm upgrade -i nvdp nvidia-device-plugin --repo https://nvidia.github.io/k8s-device-plugin"
    " -n nvidia-device-plugin --create-namespace"
)
# The CDI kinds of NVIDIA's device plugin and GPU operator: where they wrote some, no runtime is needed.
_PLUGINS_OWN = ("k8s.device-plugin.nvidia.com/", "runtime.nvidia.com/", "management.nvidia.com/")


def _without_nvidia(key: str, sentence: str, remedy: str = "") -> Cause:
    headline = "Kubernetes' engine does not use NVIDIA's runtime"
    return warn(key, headline, sentence, remedy)


DEFAULT = _without_nvidia(
    "docker-default-runtime",
    "docker's default runtime is {default}, and Kubernetes starts its pods with that one: no driver comes"
    " into them, NVIDIA's device plugin finds no NVML, and the node offers no GPU.",
    'Make NVIDIA\'s the default ("default-runtime": "nvidia" in /etc/docker/daemon.json).',
)
NO_RUNTIME = _without_nvidia(
    "no-nvidia-runtime",
    "{engine}, which starts this node's pods, has no runtime of NVIDIA's ({config}): no driver comes into a"
    " pod, and the node offers 0 GPUs.",
)
UNREAD = _without_nvidia(
    "nvidia-runtime-not-read",
    "NVIDIA's runtime is configured in {path}, in {why}: {engine} does not know it, and the node offers 0"
    " GPUs.",
)
NO_PROGRAM = _without_nvidia(
    "runtime-program-missing",
    "{engine} is configured to start pods with {program}, which is not there: no pod that asks for that"
    " runtime starts.",
)


@check(
    "CTR-009",
    title="Kubernetes' engine starts containers with NVIDIA's runtime",
    causes=[DEFAULT, NO_RUNTIME, UNREAD, NO_PROGRAM],
    about="containerd and CRI-O start a pod's containers with a runtime that their configuration names;"
    " where none of them is NVIDIA's, no driver comes into a pod and the node offers 0 GPUs, though `docker"
    " run --gpus all` may work beside it. docker starts pods with its default runtime and no other. k3s and"
    " RKE2 look for NVIDIA's runtime themselves when they start. Judged where a kubelet runs, by the"
    " configuration that its engine reads, drop-ins included.",
    sources=["k8s-device-plugin#23, #107, #406; gpu-operator#1285 (CRI-O's hooks, CDI)"],
    follows=NO_DEVICE_NODES,
)
def engine_uses_nvidia(view: SnapshotView) -> Verdicts:
    need_gpus(view)
    node = kubernetes_node(view)
    engine = need(node.engine, "the kubelet's engine")
    if engine == "docker":
        yield _docker(view)
        return
    need(node.runtimes, f"the runtimes of {engine}")
    nvidia = need(node.nvidia_runtimes, f"NVIDIA's runtimes in {engine}")
    default = known(node.default_runtime) or ""
    if node.missing_programs:
        program = node.missing_programs[0]
        yield NO_PROGRAM.found(
            about_file(program),
            [node_evidence(view, "missing_programs"), node_evidence(view, "config")],
            advice=_configure(view, node, engine, False),
            engine=engine,
            program=program,
        )
    elif default in nvidia:
        yield Passed(f"{engine}: {default}, its default runtime, is NVIDIA's")
    elif nvidia:
        yield Passed(f"{engine}: {nvidia[0]}, which pods ask for by runtimeClassName")
    elif way := _other_way(view, node):
        yield Passed(f"{engine}: {way}")
    else:
        yield _no_runtime(view, node, engine)


def _docker(view: SnapshotView) -> Verdict:
    engine = next((one for one in containers_of(view).engines if one.name == "docker"), None)
    if engine is None:
        raise Skip("docker was not asked")
    default = need(engine.default_runtime, "docker's default runtime")
    if "nvidia" in default:
        return Passed(f"docker's default runtime is {default}")
    installed = known(containers_of(view).toolkit_path)
    shown = [evidence(view, engine, field) for field in ("default_runtime", "runtimes")]
    return DEFAULT.found(
        about("engine", "docker"),
        [*shown, node_evidence(view, "engine")],
        commands=[*([] if installed else on_system(view, "container-toolkit")), *_DOCKER_DEFAULT],
        default=default,
    )


def _other_way(view: SnapshotView, node: Kubernetes) -> str:
    """How GPUs come into pods without NVIDIA's runtime; "" where nothing shows that they do."""
    if node.hooks:
        return f"NVIDIA's OCI hook, {node.hooks[0]}"
    if sum(one.count for one in known(node.offered) or []):
        return "the kubelet has GPUs to hand out, by CDI"
    if isinstance(node.offered, Unavailable) and node.offered.unavailable == "not-supported":
        return "NVIDIA's DRA driver hands out the GPUs"
    specs = known(containers_of(view).cdi_specs) or []
    return "by CDI" if any((known(s.kind) or "").startswith(_PLUGINS_OWN) for s in specs) else ""


def _no_runtime(view: SnapshotView, node: Kubernetes, engine: str) -> Finding:
    config, advice = known(node.config) or "", _configure(view, node, engine)
    shown = [node_evidence(view, "runtimes"), node_evidence(view, "config")]
    if not node.unread:
        subjects = about("engine", engine)
        return NO_RUNTIME.found(subjects, shown, advice=advice, engine=engine, config=config)
    unread = node.unread[0]
    why = (
        f"the section {unread.section}, which this version of the configuration does not have"
        if unread.reason == "section"
        else f"a file that {config} does not import"
    )
    shown.append(node_evidence(view, "unread", f"{unread.path}: {unread.reason}"))
    subjects, path = about_file(unread.path), unread.path
    return UNREAD.found(subjects, shown, advice=advice, engine=engine, path=path, why=why)


def _configure(
    view: SnapshotView, node: Kubernetes, engine: str, installed: bool | None = None
) -> Remedy:
    if installed is None:
        installed = bool(known(containers_of(view).toolkit_path))
    commands = [] if installed else on_system(view, "container-toolkit")
    name, config = node.distribution, known(node.config) or ""
    if name in ("k3s", "rke2"):
        service = "k3s" if name == "k3s" else "rke2-agent   # on a server: rke2-server"
        return Remedy(
            f"{name} looks for NVIDIA's runtime when it starts: install the toolkit and start it again."
            " Pods, and the device plugin, then ask for it by runtimeClassName: nvidia (or start it with"
            " --default-runtime nvidia).",
            [
                *commands,
                f"sudo systemctl restart {service}",
                f"sudo grep nvidia {word(config)}",
                f"{_PLUGIN} --set runtimeClassName=nvidia",
            ],
        )
    if name == "microk8s":
        enable = "sudo microk8s enable nvidia"
        return Remedy("Let MicroK8s configure its containerd.", [*commands, enable])
    runtime = "crio" if engine == "cri-o" else "containerd"
    usual = config.startswith(("/etc/containerd/", "/etc/crio/"))
    where = "" if usual else f" --config={word(config)}"
    restart = f"sudo systemctl restart {runtime}"
    return Remedy(
        "Configure NVIDIA's runtime for this engine. As the default it serves the device plugin and every"
        " pod; without --set-as-default both need a RuntimeClass, and runtimeClassName: nvidia.",
        [
            *commands,
            f"sudo nvidia-ctk runtime configure --runtime={runtime}{where} --set-as-default",
            "sudo k0s stop && sudo k0s start" if name == "k0s" else restart,
            _PLUGIN,
        ],
    )


NOTHING_OFFERED = warn(
    "no-gpu-offered",
    "the kubelet has no GPU to hand out",
    "No device plugin has told this node's kubelet of a GPU: it offers nvidia.com/gpu: 0, and pods"
    " that ask for one wait.{by_class}",
    "See whether NVIDIA's device plugin runs on this node and what it says, or install it.",
)


@check(
    "CTR-010",
    title="The kubelet has this node's GPUs to hand out",
    causes=[NOTHING_OFFERED],
    about="A pod gets a GPU where NVIDIA's device plugin told the kubelet of it (nvidia.com/gpu). Where"
    " none did, the node shows 0 of them, and every pod that asks waits as 'Insufficient nvidia.com/gpu'.",
    sources=["Kubernetes documentation, Device plugins; k8s-device-plugin#107, #406, #788"],
    follows=(*NO_DEVICE_NODES, "CTR-009", "DRV-001", "DRV-002"),
)
def kubelet_has_gpus(view: SnapshotView) -> Verdicts:
    need_gpus(view)
    node = kubernetes_node(view)
    offered = need(node.offered, "what device plugins told the kubelet")
    named = ", ".join(f"{one.resource}: {one.count}" for one in offered if one.count)
    if named:
        yield Passed(named)
        return
    nvidia, default = known(node.nvidia_runtimes) or [], known(node.default_runtime)
    by_class, option = "", ""
    if nvidia and default not in nvidia:
        by_class = (
            f" {known(node.engine)} knows NVIDIA's runtime as {nvidia[0]}, and {default} is its default: the"
            " plugin itself must ask for it."
        )
        option = f" --set runtimeClassName={word(nvidia[0])}"
    yield NOTHING_OFFERED.found(
        evidence=[
            node_evidence(view, "offered", "none of NVIDIA's"),
            node_evidence(view, "default_runtime"),
        ],
        commands=[
            "kubectl get pods -A -o wide | grep nvidia-device-plugin",
            "kubectl logs -n nvidia-device-plugin -l app.kubernetes.io/name=nvidia-device-plugin",
            _PLUGIN + option,
        ],
        by_class=by_class,
    )
