"""Checks on container engines: do they answer, and would a container get this machine's GPUs."""

from __future__ import annotations

import re

from ...data.engine_errors import explain
from ...facts.containers import Engine
from ...facts.host import Host
from .. import containers as shared
from ..container_start import mended
from ..declared import declared_causes
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
    check,
    fill_in,
    word,
)

CAUSE = declared_causes(__name__)

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


@check("CTR-001")
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
            yield CAUSE["engine-storage-full"].found(
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
    return CAUSE["engine-silent"].found(
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


_CLASSIC, _OWN_ALONE = (27, 0), (29, 2)  # versions of the snap


@check("CTR-002")
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
            yield CAUSE["toolkit-mode-without-cdi"].found(
                about("engine", engine.name), shown, engine=engine.name
            )
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
    return CAUSE["docker-desktop-on-linux"].found(
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
        return None if core else CAUSE["docker-snap-too-old"]
    own_alone = shared.at_least(version, _OWN_ALONE) and known(containers.toolkit_path)
    return CAUSE["docker-snap-beside-toolkit"] if own_alone else None


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
        cause, shown = (
            CAUSE["docker-runtime-missing"],
            shared.evidence(view, engine, "missing_runtimes"),
        )
        commands = [*toolkit, *_CONFIGURE_DOCKER]
    elif engine.name == "docker":
        cause, shown = (
            CAUSE["docker-without-gpu-runtime"],
            shared.evidence(view, engine, "runtimes"),
        )
        commands = [*missing, *configure]
    else:
        cause, shown = CAUSE["podman-without-cdi"], view.evidence("machine.containers.cdi_specs")
        commands = [*missing, shared.CDI_GENERATE]
    evidence = [shown, view.evidence("machine.containers.toolkit_path")]
    kind = "docker-rootless" if known(engine.rootless) else "docker"
    defined = shared.setting(view, f"{kind}.runtimes.nvidia.path")
    if cause is CAUSE["docker-without-gpu-runtime"] and defined is not None and not defined.missing:
        return CAUSE["docker-not-restarted"].found(
            about("engine", engine.name), evidence, place=defined.source
        )
    runtime = next(iter(engine.missing_runtimes), None)
    return cause.found(about("engine", engine.name), evidence, commands=commands, runtime=runtime)


@check("CTR-013")
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
        commands = [
            *CAUSE["rootless-loses-group"].commands,
            *([keep] if engine.name == "podman" else []),
        ]
        shown = f"{node.path} {node.mode} {node.owner}:{node.group}"
        yield CAUSE["rootless-loses-group"].found(
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
