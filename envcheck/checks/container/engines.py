"""Checks on container engines: do they answer, and would a container get this machine's GPUs."""

from __future__ import annotations

import re

from ...data.engine_errors import explain
from ...facts.containers import Engine
from ...facts.host import Host
from .. import containers as shared
from ..container_start import mended
from ..driver_state import container, on_wsl
from ..host.disk import FULL_MIB
from ..nvidia_devices import open_to_all
from ..reading import Skip, SnapshotView, Unavailable, facts_of, facts_or, known, need
from ..system_commands import on_system, systemctl
from ..verdicts import (
    Cause,
    Finding,
    Passed,
    Remedy,
    Unjudged,
    Verdicts,
    about,
    about_file,
    check,
    fill_in,
    warn,
    word,
)

_SETTINGS = re.compile(
    r"(?:registries|containers|storage|policy|short-name-aliases)\.(?:conf|json)"
    r"|registries configuration|\btoml\b",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"\b((?:tcp|ssh|https?)://[^\s]{1,200}?)[.:]?(?:\s|$)")  # docker's server
_OURS = re.compile(r"/dev/nvidia(\d+|ctl|-uvm)\Z")
_CONFIGURE_DOCKER = (
    "sudo nvidia-ctk runtime configure --runtime=docker",
    systemctl("restart", "docker"),
)
_CONFIGURE_ROOTLESS = (
    "nvidia-ctk runtime configure --runtime=docker --config=$HOME/.config/docker/daemon.json",
    systemctl("--user restart", "docker"),
    "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place",
)

SILENT = warn(
    "engine-silent",
    "a container engine does not answer",
    "{engine} is installed and does not answer{error}: no container can be started with it.",
)

STORAGE_FULL = warn(
    "engine-storage-full",
    "a container engine's storage is full",
    "{engine} keeps images and containers in {path}, where {mib} MiB are free: it can pull no image, and what"
    " containers write fails.",
    "Remove images and containers that are not needed, or give it a larger disk.",
)


@check(
    "CTR-001",
    title="The container engines answer",
    causes=[SILENT, STORAGE_FULL],
    about="docker is a client that asks a server, through a socket that only root and the group docker may"
    " open; podman needs its configuration and storage. Judged by `docker info` or `podman info`.",
    sources=["docker documentation, post-installation steps for Linux; podman-info(1)"],
    follows=(*shared.NO_GPU, "CTR-014"),
)
def engines_answer(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    engines = shared.containers_of(view).engines
    if not engines:
        raise Skip("no container engine is installed")
    for engine in engines:
        subjects, why = about("engine", engine.name), engine.server_version
        free = known(engine.storage_free_mib)
        if free is not None and free < FULL_MIB:
            name, path = word(engine.name), known(engine.storage_path) or "its storage"
            yield STORAGE_FULL.found(
                subjects,
                [shared.evidence(view, engine, "storage_free_mib")],
                commands=[f"{name} system df", f"df -h {word(path)}", f"{name} system prune"],
                engine=engine.name,
                path=path,
                mib=free,
            )
        elif not isinstance(why, Unavailable):
            yield Passed(f"{engine.name} {why}")
        elif why.unavailable == "not-supported":
            yield Unjudged("skipped", f"{engine.name} info says nothing", subjects)
        elif why.unavailable not in ("error", "no-permission", "timeout"):
            yield Passed(" ".join(filter(None, (engine.name, known(engine.version)))))
        elif container(view):
            reason = "in a container, where no server is expected to run"
            yield Unjudged("skipped", reason, subjects)
        else:
            yield silence(view, engine, why)


def silence(view: SnapshotView, engine: Engine, why: Unavailable) -> Finding:
    """The finding on an engine that does not answer."""
    lines, meant = why.detail.strip().splitlines(), explain(why.detail)
    lines += [meant.meaning] if meant else []
    text = why.detail or why.unavailable
    return SILENT.found(
        about("engine", engine.name),
        [shared.evidence(view, engine, "server_version", text)],
        advice=_wake(view, engine, why),
        engine=engine.name,
        error=f" ({lines[-1][:200]})" if lines else "",
    )


def _wake(view: SnapshotView, engine: Engine, why: Unavailable) -> Remedy:
    """What makes an engine answer, by the reason why it does not."""
    info, meant = f"{word(engine.name)} info", explain(why.detail)
    elsewhere = _ELSEWHERE.search(why.detail)
    if meant:
        return mended(view, meant, fill_in("IMAGE", "your image"))
    if elsewhere:
        text = (
            f"The client asks {elsewhere[1]}, by DOCKER_HOST or its context: start the server there, or let"
            " it ask this machine's."
        )
        commands = ["docker context ls", "unset DOCKER_HOST", "docker context use default", info]
    elif engine.name != "docker" and _SETTINGS.search(why.detail):
        text = f"Correct the file that {engine.name} names: it is one of its settings."
        commands = [info]
    elif engine.name != "docker":
        text = f"See what {engine.name} says, and bring its storage up to date."
        commands = [info, f"{word(engine.name)} system migrate"]
    elif why.unavailable == "no-permission":
        text = "Let this user talk to docker's socket (it amounts to giving the user root), and log in again."
        commands = ["sudo usermod -aG docker $USER", "newgrp docker", info]
    elif why.unavailable == "timeout":
        text = "The server hangs: look at its log, and restart it."
        commands = ["sudo journalctl -u docker -n 50", systemctl("restart", "docker")]
    else:
        text = "Start docker's server; where only the client is installed, install the server too."
        commands = [systemctl("enable --now", "docker"), *_server(view, engine)]
    return Remedy(text, commands)


def _server(view: SnapshotView, engine: Engine) -> list[str]:
    """What installs docker's server, unless it is installed: another package would put it out."""
    return [] if known(engine.server_path) else on_system(view, "docker")


REFUSED = warn(
    "gpus-refused",
    "a container was not started with its GPUs",
    "By {path}, a container was not started with its GPUs: {why}.",
)


@check(
    "CTR-016",
    title="The engines' logs have no container without its GPUs",
    causes=[REFUSED],
    about="What NVIDIA's tools and SELinux write to the system's logs where a container gets no GPU. Judged"
    " by their last words.",
    sources=["engine_errors.csv, a source in every row"],
    follows=(
        *shared.NO_DEVICE_NODES,
        "DRV-002",
        "CTR-002",
        "CTR-004",
        "CTR-007",
        "CTR-011",
        "CTR-015",
    ),
)
def nothing_refused(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    for one in shared.containers_of(view).errors:
        if meant := explain(one.text):
            yield REFUSED.found(
                about_file(one.path),
                [view.evidence("machine.containers.errors", one.text)],
                advice=mended(view, meant, fill_in("IMAGE", "your image")),
                path=one.path,
                why=meant.meaning,
            )
    yield Passed("none")


NO_RUNTIME = warn(
    "docker-without-gpu-runtime",
    "a container engine cannot hand out the GPUs",
    "docker has no GPU runtime: neither NVIDIA's runtime nor its hook nor CDI; `docker run --gpus all` ends"
    " with 'could not select device driver'.",
    "Install NVIDIA's container toolkit and configure the engine for it.",
)
NOT_RESTARTED = NO_RUNTIME.variant(
    "docker-not-restarted",
    sentence="{place} defines NVIDIA's runtime, and docker's server that runs does not know it: it was not"
    " started again since, or it is another docker, which reads another file (a snap, a rootless one).",
    remedy="Start it again, and see that it lists nvidia; else configure the docker that runs (its"
    " directory is in the first command's answer).",
    commands=(
        "docker info --format '{{json .Runtimes}} {{.DockerRootDir}}'",
        systemctl("restart", "docker"),
    ),
    source="nvidia-docker#542, #1637; nvidia-container-toolkit#378, #854",
)
RUNTIME_GONE = NO_RUNTIME.variant(
    "docker-runtime-missing",
    sentence="docker is configured to start containers with {runtime}, which is missing: they end with"
    " 'executable file not found' or 'no such file or directory'.",
    remedy="Install NVIDIA's container toolkit again, or remove its runtime from daemon.json.",
)
NO_CDI = NO_RUNTIME.variant(
    "podman-without-cdi",
    sentence="There is no CDI specification of the GPUs: `podman run --device nvidia.com/gpu=all` fails.",
)
MODE_WITHOUT_SPEC = NO_RUNTIME.variant(
    "toolkit-mode-without-cdi",
    sentence="The mode in the toolkit's configuration is cdi, and there is no CDI specification of the GPUs:"
    " {engine}'s containers end with 'unresolvable CDI devices nvidia.com/gpu=all', or, with --gpus, with"
    " 'invoking the NVIDIA Container Runtime Hook directly is not supported'.",
    remedy="Write the specification, and start containers with --runtime=nvidia or --device"
    " nvidia.com/gpu=all; or let the toolkit choose the mode, for --gpus (the last command).",
    commands=(
        shared.CDI_GENERATE,
        "sudo nvidia-ctk config --set nvidia-container-runtime.mode=auto --in-place",
    ),
    source="dstackai/dstack#2306; k8s-device-plugin#1203; nvidia-container-toolkit#63",
)
OLD_SNAP = NO_RUNTIME.variant(
    "docker-snap-too-old",
    sentence="docker {version} is the snap, which is confined and does not see the driver's libraries of a"
    " classic system before 27: `docker run --gpus all` ends with 'load library failed: libnvidia-ml.so.1'.",
    remedy="Refresh the snap to 27 or newer, and start containers with --runtime nvidia; or install docker"
    " from packages instead, with NVIDIA's container toolkit. A snap that is removed takes its images and"
    " volumes along (snapd keeps a snapshot for some weeks).",
    commands=("snap list docker", "sudo snap refresh docker"),
    source="canonical/docker-snap#148, #161",
)
DESKTOP = NO_RUNTIME.variant(
    "docker-desktop-on-linux",
    sentence="docker asks Docker Desktop, whose virtual machine has none of this machine's GPUs on Linux:"
    " `docker run --gpus all` ends with 'could not select device driver'.",
    remedy="Use docker's engine on the machine itself: install it if it is not, with NVIDIA's container"
    " toolkit, and let the client ask it. Images and containers of Docker Desktop stay there.",
    source="docker/docs#19366; nvidia-container-toolkit#175; docker/desktop-linux#79",
)
SNAP_BESIDE_TOOLKIT = NO_RUNTIME.variant(
    "docker-snap-beside-toolkit",
    sentence="docker {version} is the snap, which brings its own toolkit: from 29.2 on it starts no container"
    " with a GPU where NVIDIA's container toolkit is installed on the host, too.",
    remedy="Name the driver for each container (the command), or remove the host's toolkit if nothing else"
    " uses it, and reboot.",
    commands=(
        "docker run --rm --runtime nvidia --gpus all,driver=nvidia.runtime-hook ubuntu nvidia-smi -L",
    ),
    source="canonical/docker-snap#357, README",
)
_CLASSIC, _OWN_ALONE = (27, 0), (29, 2)  # versions of the snap


@check(
    "CTR-002",
    title="The container engines can hand out the GPUs",
    causes=[
        RUNTIME_GONE,
        NO_RUNTIME,
        NOT_RESTARTED,
        NO_CDI,
        MODE_WITHOUT_SPEC,
        OLD_SNAP,
        DESKTOP,
        SNAP_BESIDE_TOOLKIT,
    ],
    about="No engine passes GPUs to containers by itself: docker needs NVIDIA's hook, its runtime or a CDI"
    " specification; podman needs a CDI specification (or the older hook).",
    sources=["nvidia-container-toolkit#854, #522; NVIDIA Container Toolkit installation guide"],
    follows=shared.NO_GPU,
)
def engines_give_gpus(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    by_cdi = known(shared.containers_of(view).toolkit_mode) == "cdi"  # NVIDIA's runtime and hook
    lacking = by_cdi and not shared.nvidia_specs(view)
    for engine in shared.containers_of(view).engines:
        if shared.nvidia_specs(view) and _cdi_is_off(view, engine):
            what = f"docker {known(engine.version)} takes --device nvidia.com/gpu=all with"
            where = '"features": {"cdi": true} in /etc/docker/daemon.json alone; then restart it'
            yield Passed(f"{what} {where}", note=True)
        if known(engine.desktop) is True and not on_wsl(view):
            yield _not_of_a_desktop(view, engine)
            return
        if lacking and engine.name == "docker" and _way(view, engine):
            shown = [
                view.evidence(f"machine.containers.{at}") for at in ("toolkit_mode", "cdi_specs")
            ]
            yield MODE_WITHOUT_SPEC.found(about("engine", engine.name), shown, engine=engine.name)
            return
    for engine in shared.serving(view):
        if cause := _of_a_snap(view, engine):
            yield cause.found(
                about("engine", engine.name),
                [shared.evidence(view, engine, name) for name in ("path", "server_version")],
                version=known(engine.server_version),
            )
            continue
        way = _way(view, engine)
        if way and known(engine.selinux) is True:
            label = "with --security-opt label=disable, unless SELinux lets containers use devices"
            yield Passed(f"{engine.name} gives GPUs by {way}, {label}", note=True)
        elif way:
            yield Passed(f"{engine.name}: {way}")
        elif way is None:
            why = f"{engine.name} is too old for any way, or its version is not known (CTR-006)"
            yield Unjudged("skipped", why, about("engine", engine.name))
        else:
            yield _no_way(view, engine)


def _cdi_is_off(view: SnapshotView, engine: Engine) -> bool:
    """Whether this docker knows CDI as an experiment, which nothing switches on."""
    version, on = known(engine.version), shared.setting(view, "docker.features.cdi")
    new_enough = shared.at_least(version, shared.DOCKER_CDI) is False and shared.at_least(
        version, (25, 0)
    )
    off = known(engine.cdi_enabled) is not True and (on is None or on.value != "true")
    return engine.name == "docker" and bool(new_enough) and off


def _not_of_a_desktop(view: SnapshotView, engine: Engine) -> Finding:
    installed = known(shared.containers_of(view).toolkit_path)
    return DESKTOP.found(
        about("engine", engine.name),
        [shared.evidence(view, engine, "desktop")],
        commands=[
            "docker context ls",
            *_server(view, engine),
            *([] if installed else on_system(view, "container-toolkit")),
            "docker context use default",
            *_CONFIGURE_DOCKER,
        ],
    )


def _of_a_snap(view: SnapshotView, engine: Engine) -> Cause | None:
    if engine.name != "docker" or not engine.path.startswith("/snap/"):
        return None
    version, containers = known(engine.server_version), shared.containers_of(view)
    core = known(facts_or(view.machine.host, Host).os_id) == "ubuntu-core"
    if shared.at_least(version, _CLASSIC) is False:
        return None if core else OLD_SNAP
    own_alone = shared.at_least(version, _OWN_ALONE) and known(containers.toolkit_path)
    return SNAP_BESIDE_TOOLKIT if own_alone else None


def _way(view: SnapshotView, engine: Engine) -> str | None:
    """How the engine hands out GPUs; "" if it cannot, None where another check says more."""
    containers = shared.containers_of(view)
    by_cdi = "--device nvidia.com/gpu=all, by CDI" if shared.nvidia_specs(view) else ""
    if engine.name == "docker":
        if "nvidia" in (known(engine.runtimes) or []) and not engine.missing_runtimes:
            return "the nvidia runtime"
        if known(containers.hook_path):
            return "--gpus, by nvidia-container-runtime-hook"
        return by_cdi if shared.docker_uses_cdi(engine) else ""
    if engine.name == "podman":
        if known(containers.oci_hooks):
            return "NVIDIA's OCI hook"
        return by_cdi if shared.at_least(known(engine.version), shared.PODMAN_CDI) else None
    return "--nv" if engine.name == "apptainer" else "nvidia-container-cli"


def _no_way(view: SnapshotView, engine: Engine) -> Finding:
    toolkit = on_system(view, "container-toolkit")
    missing = [] if known(shared.containers_of(view).toolkit_path) else toolkit
    configure = _CONFIGURE_ROOTLESS if known(engine.rootless) else _CONFIGURE_DOCKER
    if engine.missing_runtimes:
        cause, shown = RUNTIME_GONE, shared.evidence(view, engine, "missing_runtimes")
        commands = [*toolkit, *_CONFIGURE_DOCKER]
    elif engine.name == "docker":
        cause, shown = NO_RUNTIME, shared.evidence(view, engine, "runtimes")
        commands = [*missing, *configure]
    else:
        cause, shown = NO_CDI, view.evidence("machine.containers.cdi_specs")
        commands = [*missing, shared.CDI_GENERATE]
    evidence = [shown, view.evidence("machine.containers.toolkit_path")]
    kind = "docker-rootless" if known(engine.rootless) else "docker"
    defined = shared.setting(view, f"{kind}.runtimes.nvidia.path")
    if cause is NO_RUNTIME and defined is not None and not defined.missing:
        return NOT_RESTARTED.found(about("engine", engine.name), evidence, place=defined.source)
    runtime = next(iter(engine.missing_runtimes), None)
    return cause.found(about("engine", engine.name), evidence, commands=commands, runtime=runtime)


GROUP_LOST = warn(
    "rootless-loses-group",
    "rootless containers may not open the GPUs' nodes",
    "{engine} runs rootless, and {node} is open to the group {group} alone ({mode}): its containers lose the"
    " user's other groups, and nothing in them finds a GPU (Insufficient Permissions).",
    "Let the driver make its nodes open to all, which is its default (take NVreg_DeviceFileMode,"
    " NVreg_DeviceFileGID and udev rules away, or set the mode to 0666), and reboot; or let containers keep"
    " the groups.",
    "grep -rn NVreg_DeviceFile /etc/modprobe.d /usr/lib/modprobe.d",
    "grep -rn nvidia /etc/udev/rules.d",
    "echo 'options nvidia NVreg_DeviceFileMode=0666' | sudo tee /etc/modprobe.d/nvidia-nodes.conf",
)


@check(
    "CTR-013",
    title="Rootless containers may open the device nodes",
    causes=[GROUP_LOST],
    about="A rootless engine maps one user and group into a container, and drops the others: nodes that are"
    " open to a group such as video are closed there.",
    sources=["nvidia-container-toolkit#210; podman-run(1), --group-add keep-groups; driver README"],
    follows=shared.NO_DEVICE_NODES,
)
def rootless_may_open(view: SnapshotView) -> Verdicts:
    shared.need_gpus(view)
    maps = ("docker", "podman")  # groups
    rootless = [one for one in shared.serving(view) if one.name in maps and known(one.rootless)]
    if not rootless:
        raise Skip("no engine runs rootless")
    nodes = need(facts_of(view.machine.kernel, "device nodes").device_nodes, "the device nodes")
    closed = [node for node in nodes if _OURS.match(node.path) and not open_to_all(node)]
    for engine in rootless if closed else ():
        node, keep = closed[0], "# podman run --group-add keep-groups …   # needs crun"
        commands = [*GROUP_LOST.commands, *([keep] if engine.name == "podman" else [])]
        shown = f"{node.path} {node.mode} {node.owner}:{node.group}"
        yield GROUP_LOST.found(
            about("engine", engine.name),
            [
                shared.evidence(view, engine, "rootless"),
                view.evidence("machine.kernel.device_nodes", shown),
            ],
            commands=commands,
            engine=engine.name,
            node=node.path,
            group=node.group,
            mode=node.mode,
        )
    yield Passed("the nodes are open to all")
