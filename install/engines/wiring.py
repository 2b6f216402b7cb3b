"""How GPUs get into an engine's containers on this machine. Pure."""

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
_CAPABILITIES = {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
# Read by NVIDIA's hook and runtime. NVIDIA's images set them, others do not.
VISIBLE = {"NVIDIA_VISIBLE_DEVICES": "all", **_CAPABILITIES}
NONE = Wiring(kind="none", arguments=[], sentence="without GPUs")

_RUNTIME = Wiring(
    kind="runtime",
    arguments=["--runtime=nvidia"],
    environment=VISIBLE,
    sentence="by NVIDIA's container runtime (--runtime=nvidia)",
)
_GPUS = Wiring(
    kind="gpus",
    arguments=["--gpus", "all"],
    environment=_CAPABILITIES,
    sentence="by docker's --gpus and NVIDIA's hook",
)


def find(engine: Engine, containers: Containers) -> Wiring | None:
    """The best way that works here, CDI first; None if the engine has no way to this machine's GPUs."""
    podman = engine.name == "podman"
    specs = _usable(engine, containers)
    version = known(engine.version) or known(engine.server_version)
    if specs and (at_least(version, PODMAN_CDI) if podman else docker_uses_cdi(engine)):
        sentence = f"by CDI ({specs[0].path})"
        return Wiring(kind="cdi", arguments=["--device", ALL], sentence=sentence)
    if podman:
        hooks = known(containers.oci_hooks)
        sentence = f"by NVIDIA's OCI hook ({hooks[0]})" if hooks else ""
        hook = Wiring(kind="hook", arguments=[], environment=VISIBLE, sentence=sentence)
        return hook if hooks else None
    if "nvidia" in (known(engine.runtimes) or []):
        return _RUNTIME
    by_cdi = at_least(known(engine.server_version), DOCKER_GPUS_BY_CDI)
    return _GPUS if known(containers.hook_path) and not by_cdi else None


def _usable(engine: Engine, containers: Containers) -> list[CdiSpec]:
    """The specifications of NVIDIA's GPUs that the engine accepts and whose files exist.

    One that could not be read here may be readable for the engine, and is taken.
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
