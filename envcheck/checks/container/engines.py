"""Checks on container engines: do they answer, and would a container get this machine's GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.base import Unavailable, known
from ...facts.containers import Engine
from ...facts.missing import NotKnown, Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.shell import word
from ...findings.subjects import about
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
from ..driver_state import on_wsl
from ..registry import check
from ..system_commands import on_system

_SETTINGS = re.compile(
    r"(?:registries|containers|storage|policy|short-name-aliases)\.(?:conf|json)"
    r"|registries configuration|\btoml\b",
    re.IGNORECASE,
)
CONFIGURE_DOCKER = [
    "sudo nvidia-ctk runtime configure --runtime=docker",
    "sudo systemctl restart docker",
]
CONFIGURE_ROOTLESS_DOCKER = [
    "nvidia-ctk runtime configure --runtime=docker --config=$HOME/.config/docker/daemon.json",
    "systemctl --user restart docker",
    "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place",
]


@check(
    "CTR-001",
    title="The container engines answer",
    problem="a container engine does not answer",
    about="docker is a client that asks a server, through a socket that only root and the group docker"
    " may open; podman works without a server, but not without its configuration and storage. An engine"
    " that is installed and does not answer can run nothing. Judged by the engine's own answer to"
    " `docker info` or `podman info`, in its own words.",
    sources=("docker documentation, post-installation steps for Linux", "podman-info(1)"),
    follows=NO_GPU,
)
def engines_answer(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)
    engines = containers_of(view).engines
    if not engines:
        raise Skip("no container engine is installed")
    for engine in engines:
        if isinstance(engine.server_version, Unavailable):
            yield from _silent(view, engine, engine.server_version)
        else:
            yield Passed(f"{engine.name} {engine.server_version}")


def _silent(view: SnapshotView, engine: Engine, why: Unavailable) -> Iterator[Verdict]:
    if why.unavailable not in ("error", "no-permission", "timeout"):
        version = known(engine.version)  # an engine that needs no server
        yield Passed(f"{engine.name}{f' {version}' if version else ''}")
        return
    host = view.machine.host
    place = known(host.facts.container) if host is not None and host.facts is not None else None
    if place:
        yield Unjudged(
            "skipped",
            "in a container, where no server is expected to run",
            about("engine", engine.name),
        )
        return
    words = why.detail.strip().splitlines()
    said = f" ({words[-1][:200]})" if words else ""
    yield Finding(
        "warn",
        f"{engine.name} is installed and does not answer{said}: no container can be started with it.",
        subjects=about("engine", engine.name),
        evidence=[evidence(view, engine, "server_version", why.detail or why.unavailable)],
        remedy=wake(view, engine, why),
    )


def wake(view: SnapshotView, engine: Engine, why: Unavailable) -> Remedy:
    """What brings an engine to answer, by the reason why it does not."""
    if engine.name != "docker":
        if _SETTINGS.search(why.detail):
            return Remedy(
                f"Correct the file that {engine.name} names: it is one of its settings.",
                [f"{word(engine.name)} info"],
            )
        return Remedy(
            f"See what {engine.name} says, and bring its storage up to date.",
            [f"{word(engine.name)} info", f"{word(engine.name)} system migrate"],
        )
    if why.unavailable == "no-permission":
        return Remedy(
            "Let this user talk to docker's socket (it amounts to giving the user root), and log in again.",
            ["sudo usermod -aG docker $USER", "newgrp docker", "docker info"],
        )
    if why.unavailable == "timeout":
        return Remedy(
            "The server hangs: look at its log, and restart it.",
            ["sudo journalctl -u docker -n 50", "sudo systemctl restart docker"],
        )
    return Remedy(
        "Start docker's server; where only the client is installed, install the server too.",
        ["sudo systemctl enable --now docker", *on_system(view, "docker")],
    )


@check(
    "CTR-002",
    title="The container engines can hand out the GPUs",
    problem="a container engine cannot hand out the GPUs",
    about="No engine gives a container a GPU by itself: docker needs NVIDIA's hook, its runtime or a CDI"
    " specification, podman a CDI specification (or the older hook), enroot nvidia-container-cli;"
    " apptainer brings its own way (--nv). Without any, docker ends with 'could not select device driver"
    ' "" with capabilities: [[gpu]]\', and podman does not know the device. Judged by the runtimes that the'
    " server names and by what is installed.",
    sources=(
        "nvidia-container-toolkit#854",
        "nvidia-container-runtime#190",
        "NVIDIA Container Toolkit installation guide",
        "nvidia-container-toolkit#522; docker-snap#148; nvidia-docker#1637 (snap)",
        "Docker documentation, GPU support in Docker Desktop",
    ),
    follows=NO_GPU,
)
def engines_give_gpus(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)
    for engine in containers_of(view).engines:
        if known(engine.desktop) is True and not on_wsl(view):
            yield _in_desktop(view, engine)
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


def _in_desktop(view: SnapshotView, engine: Engine) -> Finding:
    return Finding(
        "warn",
        "docker is Docker Desktop here, which runs containers in a virtual machine of its own: this machine's"
        " GPUs are not in it.",
        subjects=about("engine", engine.name),
        evidence=[evidence(view, engine, "desktop")],
        remedy=Remedy(
            "Use docker's engine itself, beside Docker Desktop or in its place.",
            [
                *on_system(view, "docker"),
                "docker context use default",
                *CONFIGURE_DOCKER,
            ],
        ),
    )


def _way(view: SnapshotView, engine: Engine) -> str | None:
    """How the engine hands out GPUs; "" where it has no way, None where another check says more."""
    containers = containers_of(view)
    specs = nvidia_specs(view)
    if engine.name == "docker":
        if "nvidia" in (known(engine.runtimes) or []) and not engine.missing_runtimes:
            return "the nvidia runtime"
        if known(containers.hook_path):
            return "--gpus, by nvidia-container-runtime-hook"
        return "--device nvidia.com/gpu=all, by CDI" if specs and docker_uses_cdi(engine) else ""
    if engine.name == "podman":
        if known(containers.oci_hooks):
            return "NVIDIA's OCI hook"
        if not at_least(known(engine.version), PODMAN_CDI):
            return None
        return "--device nvidia.com/gpu=all, by CDI" if specs else ""
    if engine.name == "enroot":
        return "nvidia-container-cli" if known(containers.cli_path) else ""
    return "--nv"


def _no_way(view: SnapshotView, engine: Engine) -> Finding:
    containers = containers_of(view)
    commands = [] if known(containers.toolkit_path) else on_system(view, "container-toolkit")
    text = "Install NVIDIA's container toolkit and tell the engine about it."
    if engine.name == "docker" and engine.path.startswith("/snap/"):
        message = (
            "docker came as a snap and has no GPU runtime: a snap does not see the toolkit and the driver's"
            " libraries that are installed on this machine."
        )
        text = "Replace the snap by the distribution's docker (or docker-ce), and configure that."
        commands = [
            "docker ps -a  # containers and images stay in the snap, which is switched off and kept",
            "sudo snap disable docker",
            *on_system(view, "docker"),
            *commands,
            *CONFIGURE_DOCKER,
        ]
        shown = evidence(view, engine, "path")
    elif engine.missing_runtimes:
        message = (
            f"docker is configured to start containers with {engine.missing_runtimes[0]}, which is not there:"
            " they end with 'executable file not found' or 'no such file or directory'."
        )
        text = "Install NVIDIA's container toolkit again, or take its runtime out of daemon.json."
        commands = [*on_system(view, "container-toolkit"), *CONFIGURE_DOCKER]
        shown = evidence(view, engine, "missing_runtimes")
    elif engine.name == "docker":
        message = (
            "docker has no GPU runtime: neither NVIDIA's runtime nor its hook nor CDI; `docker run --gpus"
            " all` ends with 'could not select device driver'."
        )
        commands += CONFIGURE_ROOTLESS_DOCKER if known(engine.rootless) else CONFIGURE_DOCKER
        shown = evidence(view, engine, "runtimes")
    elif engine.name == "podman":
        message = (
            "There is no CDI specification of the GPUs: `podman run --device nvidia.com/gpu=all` does not"
            " know that device."
        )
        commands.append(CDI_GENERATE)
        shown = view.evidence("machine.containers.cdi_specs")
    else:
        message = f"nvidia-container-cli is missing, and {engine.name}'s hook for GPUs calls it."
        shown = view.evidence("machine.containers.cli_path")
    return Finding(
        "warn",
        message,
        subjects=about("engine", engine.name),
        evidence=[shown, view.evidence("machine.containers.toolkit_path")],
        remedy=Remedy(text, commands),
    )


@check(
    "CTR-006",
    title="podman is new enough for CDI",
    problem="podman is too old for CDI",
    about="podman takes GPUs by CDI (--device nvidia.com/gpu=all) since 4.1; an older one says 'stat"
    " nvidia.com/gpu=all: no such file or directory'. Its --gpus option is accepted and silently ignored"
    " before 5.0. Judged by podman's version, where no OCI hook of NVIDIA's is installed.",
    sources=("podman#19330", "podman#20257", "podman#21180", "nvidia-container-toolkit#63"),
    follows=NO_GPU,
)
def podman_version(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)
    engine = next(
        (engine for engine in containers_of(view).engines if engine.name == "podman"), None
    )
    if engine is None:
        raise Skip("podman is not installed")
    version = known(engine.version)
    new_enough = at_least(version, PODMAN_CDI)
    if new_enough is None:
        raise NotKnown("podman's version")
    if new_enough:
        ignored = at_least(version, (5, 0)) is False
        yield Passed(
            f"podman {version}{', use --device, for it ignores --gpus' if ignored else ''}"
        )
    elif known(containers_of(view).oci_hooks):
        yield Passed(f"podman {version}, by NVIDIA's OCI hook")
    else:
        yield Finding(
            "warn",
            f"podman {version} is older than 4.1, which knows CDI first: no option gives its containers a"
            " GPU, and it ignores --gpus without a word.",
            evidence=[evidence(view, engine, "version")],
            remedy=Remedy(
                "Upgrade podman (Debian 12 and Ubuntu 24.04 bring one that is new enough), or use docker.",
                on_system(view, "podman-versions"),
            ),
        )
