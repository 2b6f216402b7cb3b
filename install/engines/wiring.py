"""How GPUs get into an engine's containers on this machine: pure, from what was found there."""

from __future__ import annotations

from ...checks.containers import (
    DOCKER_GPUS_BY_CDI,
    KIND,
    PODMAN_CDI,
    at_least,
    docker_uses_cdi,
)
from ...data import cdi_versions
from ...facts.base import known
from ...facts.containers import CdiSpec, Containers, Engine
from ..engine import Wiring

ALL = f"{KIND}=all"
# NVIDIA's hook and runtime read these; images of NVIDIA's have them, others do not.
VISIBLE = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
NONE = Wiring(kind="none", arguments=[], sentence="without GPUs")


def find(engine: Engine, containers: Containers) -> Wiring | None:
    """The best way that is there, CDI first; None where the engine has no way to this machine's GPUs."""
    if engine.name == "podman":
        return _podman(engine, containers)
    if engine.name == "docker":
        return _docker(engine, containers)
    if engine.name == "enroot":
        if not known(containers.cli_path):
            return None
        return Wiring(
            kind="enroot",
            arguments=[],
            environment=VISIBLE,
            sentence="by enroot's hook, which calls nvidia-container-cli",
        )
    return Wiring(kind="nv", arguments=["--nv"], sentence=f"by {engine.name}'s --nv")


def usable(engine: Engine, containers: Containers) -> list[CdiSpec]:
    """The specifications of NVIDIA's GPUs that the engine reads and that rest on files that are there.

    One that could not be read here may be read by the engine, and one of which nothing says no is taken.
    """
    return [
        spec
        for spec in known(containers.cdi_specs) or []
        if known(spec.kind) in (KIND, None)
        and not known(spec.missing_paths)
        and not cdi_versions.rejects(
            engine.name, known(engine.server_version) or "", known(spec.version) or ""
        )
    ]


def _cdi(spec: CdiSpec) -> Wiring:
    return Wiring(kind="cdi", arguments=["--device", ALL], sentence=f"by CDI ({spec.path})")


def _podman(engine: Engine, containers: Containers) -> Wiring | None:
    specs = usable(engine, containers)
    version = known(engine.version) or known(engine.server_version)
    if specs and at_least(version, PODMAN_CDI):
        return _cdi(specs[0])
    hooks = known(containers.oci_hooks)
    if not hooks:
        return None
    return Wiring(
        kind="hook",
        arguments=[],
        environment=VISIBLE,
        sentence=f"by NVIDIA's OCI hook ({hooks[0]})",
    )


def _docker(engine: Engine, containers: Containers) -> Wiring | None:
    specs = usable(engine, containers)
    if specs and docker_uses_cdi(engine):
        return _cdi(specs[0])
    if "nvidia" in (known(engine.runtimes) or []):
        return Wiring(
            kind="runtime",
            arguments=["--runtime=nvidia"],
            environment=VISIBLE,
            sentence="by NVIDIA's container runtime (--runtime=nvidia)",
        )
    if known(containers.hook_path) and not at_least(
        known(engine.server_version), DOCKER_GPUS_BY_CDI
    ):
        return Wiring(
            kind="gpus",
            arguments=["--gpus", "all"],
            environment={"NVIDIA_DRIVER_CAPABILITIES": VISIBLE["NVIDIA_DRIVER_CAPABILITIES"]},
            sentence="by docker's --gpus and NVIDIA's hook",
        )
    return None
