"""Checks on container engines: do they answer, and would a container get this machine's GPUs."""

from __future__ import annotations

import re

from ...facts.containers import Engine
from ..containers import (
    CDI_GENERATE,
    NO_GPU,
    PODMAN_CDI,
    at_least,
    containers_of,
    docker_uses_cdi,
    evidence,
    need_gpus,
    nvidia_specs,
    serving,
)
from ..driver_state import container, on_wsl
from ..reading import NotKnown, Skip, SnapshotView, Unavailable, known
from ..system_commands import on_system
from ..verdicts import (
    Cause,
    Finding,
    Passed,
    Remedy,
    Unjudged,
    Verdicts,
    about,
    check,
    warn,
    word,
)

_SETTINGS = re.compile(
    r"(?:registries|containers|storage|policy|short-name-aliases)\.(?:conf|json)"
    r"|registries configuration|\btoml\b",
    re.IGNORECASE,
)
_CONFIGURE_DOCKER = (
    "sudo nvidia-ctk runtime configure --runtime=docker",
    "sudo systemctl restart docker",
)
_CONFIGURE_ROOTLESS = (
    "nvidia-ctk runtime configure --runtime=docker --config=$HOME/.config/docker/daemon.json",
    "systemctl --user restart docker",
    "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place",
)

SILENT = warn(
    "engine-silent",
    "a container engine does not answer",
    "{engine} is installed and does not answer{error}: no container can be started with it.",
)


@check(
    "CTR-001",
    title="The container engines answer",
    causes=[SILENT],
    about="docker is a client that asks a server, through a socket that only root and the group docker may"
    " open; podman needs its configuration and storage. An engine that does not answer can run nothing.",
    sources=["docker documentation, post-installation steps for Linux; podman-info(1)"],
    follows=NO_GPU,
)
def engines_answer(view: SnapshotView) -> Verdicts:
    need_gpus(view)
    engines = containers_of(view).engines
    if not engines:
        raise Skip("no container engine is installed")
    for engine in engines:
        subjects, why = about("engine", engine.name), engine.server_version
        if not isinstance(why, Unavailable):
            yield Passed(f"{engine.name} {why}")
        elif why.unavailable not in ("error", "no-permission", "timeout"):
            yield Passed(" ".join(filter(None, (engine.name, known(engine.version)))))
        elif container(view):
            reason = "in a container, where no server is expected to run"
            yield Unjudged("skipped", reason, subjects)
        else:
            words = why.detail.strip().splitlines()
            yield SILENT.found(
                subjects,
                [evidence(view, engine, "server_version", why.detail or why.unavailable)],
                advice=wake(view, engine, why),
                engine=engine.name,
                error=f" ({words[-1][:200]})" if words else "",
            )


def wake(view: SnapshotView, engine: Engine, why: Unavailable) -> Remedy:
    """What makes an engine answer, by the reason why it does not."""
    info = f"{word(engine.name)} info"
    if engine.name != "docker" and _SETTINGS.search(why.detail):
        text, commands = (
            f"Correct the file that {engine.name} names: it is one of its settings.",
            [info],
        )
    elif engine.name != "docker":
        text = f"See what {engine.name} says, and bring its storage up to date."
        commands = [info, f"{word(engine.name)} system migrate"]
    elif why.unavailable == "no-permission":
        text = "Let this user talk to docker's socket (it amounts to giving the user root), and log in again."
        commands = ["sudo usermod -aG docker $USER", "newgrp docker", info]
    elif why.unavailable == "timeout":
        text = "The server hangs: look at its log, and restart it."
        commands = ["sudo journalctl -u docker -n 50", "sudo systemctl restart docker"]
    else:
        text = "Start docker's server; where only the client is installed, install the server too."
        commands = ["sudo systemctl enable --now docker", *on_system(view, "docker")]
    return Remedy(text, commands)


_INSTALL = "Install NVIDIA's container toolkit and tell the engine about it."


def _cannot(key: str, sentence: str, remedy: str = _INSTALL) -> Cause:
    return warn(key, "a container engine cannot hand out the GPUs", sentence, remedy)


DESKTOP = _cannot(
    "docker-desktop",
    "docker is Docker Desktop here, which runs containers in a virtual machine of its own: this machine's"
    " GPUs are not in it.",
    "Use docker's engine itself, beside Docker Desktop or instead of it.",
)
SNAP = _cannot(
    "docker-snap",
    "docker came as a snap and has no GPU runtime: a snap does not see the toolkit and the driver's"
    " libraries that are installed on this machine.",
    "Replace the snap by the distribution's docker (or docker-ce), and configure that.",
)
RUNTIME_GONE = _cannot(
    "docker-runtime-missing",
    "docker is configured to start containers with {runtime}, which is not there: they end with 'executable"
    " file not found' or 'no such file or directory'.",
    "Install NVIDIA's container toolkit again, or take its runtime out of daemon.json.",
)
NO_RUNTIME = _cannot(
    "docker-without-gpu-runtime",
    "docker has no GPU runtime: neither NVIDIA's runtime nor its hook nor CDI; `docker run --gpus all` ends"
    " with 'could not select device driver'.",
)
NO_CDI = _cannot(
    "podman-without-cdi",
    "There is no CDI specification of the GPUs: `podman run --device nvidia.com/gpu=all` does not know that"
    " device.",
)
NO_CLI = _cannot(
    "nvidia-container-cli-missing",
    "nvidia-container-cli is missing, and {engine}'s hook for GPUs calls it.",
)


@check(
    "CTR-002",
    title="The container engines can hand out the GPUs",
    causes=[DESKTOP, SNAP, RUNTIME_GONE, NO_RUNTIME, NO_CDI, NO_CLI],
    about="No engine gives a container a GPU by itself: docker needs NVIDIA's hook, its runtime or a CDI"
    " specification, podman a CDI specification (or the older hook), enroot nvidia-container-cli; apptainer"
    " brings its own way (--nv). Judged by the runtimes that the server names and by what is installed.",
    sources=["nvidia-container-toolkit#854, #522; nvidia-container-runtime#190; docker-snap#148"],
    follows=NO_GPU,
)
def engines_give_gpus(view: SnapshotView) -> Verdicts:
    need_gpus(view)
    for engine in containers_of(view).engines:
        if known(engine.desktop) is True and not on_wsl(view):
            yield DESKTOP.found(
                about("engine", engine.name),
                [evidence(view, engine, "desktop")],
                commands=[
                    *on_system(view, "docker"),
                    "docker context use default",
                    *_CONFIGURE_DOCKER,
                ],
            )
            return
    for engine in serving(view):
        way = _way(view, engine)
        if way:
            yield Passed(f"{engine.name}: {way}")
        elif way is None:
            why = f"{engine.name} is too old for any way, or its version is not known (CTR-006)"
            yield Unjudged("skipped", why, about("engine", engine.name))
        else:
            yield _no_way(view, engine)


def _way(view: SnapshotView, engine: Engine) -> str | None:
    """How the engine hands out GPUs; "" if it cannot, None where another check says more."""
    containers = containers_of(view)
    by_cdi = "--device nvidia.com/gpu=all, by CDI" if nvidia_specs(view) else ""
    if engine.name == "docker":
        if "nvidia" in (known(engine.runtimes) or []) and not engine.missing_runtimes:
            return "the nvidia runtime"
        if known(containers.hook_path):
            return "--gpus, by nvidia-container-runtime-hook"
        return by_cdi if docker_uses_cdi(engine) else ""
    if engine.name == "podman":
        if known(containers.oci_hooks):
            return "NVIDIA's OCI hook"
        return by_cdi if at_least(known(engine.version), PODMAN_CDI) else None
    if engine.name == "enroot":
        return "nvidia-container-cli" if known(containers.cli_path) else ""
    return "--nv"


def _no_way(view: SnapshotView, engine: Engine) -> Finding:
    toolkit = on_system(view, "container-toolkit")
    missing = [] if known(containers_of(view).toolkit_path) else toolkit
    cause, commands, shown = NO_CLI, missing, view.evidence("machine.containers.cli_path")
    if engine.name == "docker" and engine.path.startswith("/snap/"):
        cause, shown = SNAP, evidence(view, engine, "path")
        commands = [
            "docker ps -a  # containers and images stay in the snap, which is switched off and kept",
            "sudo snap disable docker",
            *(*on_system(view, "docker"), *missing, *_CONFIGURE_DOCKER),
        ]
    elif engine.missing_runtimes:
        cause, shown = RUNTIME_GONE, evidence(view, engine, "missing_runtimes")
        commands = [*toolkit, *_CONFIGURE_DOCKER]
    elif engine.name == "docker":
        cause, shown = NO_RUNTIME, evidence(view, engine, "runtimes")
        rootless = known(engine.rootless)
        commands = [*missing, *(_CONFIGURE_ROOTLESS if rootless else _CONFIGURE_DOCKER)]
    elif engine.name == "podman":
        cause, shown = NO_CDI, view.evidence("machine.containers.cdi_specs")
        commands = [*missing, CDI_GENERATE]
    return cause.found(
        about("engine", engine.name),
        [shown, view.evidence("machine.containers.toolkit_path")],
        commands=commands,
        engine=engine.name,
        runtime=next(iter(engine.missing_runtimes), None),
    )


PODMAN_OLD = warn(
    "podman-before-cdi",
    "podman is too old for CDI",
    "podman {version} is older than 4.1, which knows CDI first: no option gives its containers a"
    " GPU, and it silently ignores --gpus.",
    "Upgrade podman (Debian 12 and Ubuntu 24.04 bring one that is new enough), or use docker.",
)


@check(
    "CTR-006",
    title="podman is new enough for CDI",
    causes=[PODMAN_OLD],
    about="podman takes GPUs by CDI (--device nvidia.com/gpu=all) since 4.1; an older one reports 'stat"
    " nvidia.com/gpu=all: no such file or directory'. Its --gpus option is accepted and silently ignored"
    " before 5.0.",
    sources=["podman#19330, #20257, #21180; nvidia-container-toolkit#63"],
    follows=NO_GPU,
)
def podman_version(view: SnapshotView) -> Verdicts:
    need_gpus(view)
    engine = next((one for one in containers_of(view).engines if one.name == "podman"), None)
    if engine is None:
        raise Skip("podman is not installed")
    version = known(engine.version)
    new_enough = at_least(version, PODMAN_CDI)
    if new_enough is None:
        raise NotKnown("podman's version")
    if new_enough:
        ignored = at_least(version, (5, 0)) is False
        yield Passed(f"podman {version}{', use --device, it ignores --gpus' if ignored else ''}")
    elif known(containers_of(view).oci_hooks):
        yield Passed(f"podman {version}, by NVIDIA's OCI hook")
    else:
        yield PODMAN_OLD.found(
            evidence=[evidence(view, engine, "version")],
            commands=on_system(view, "podman-versions"),
            version=version,
        )
