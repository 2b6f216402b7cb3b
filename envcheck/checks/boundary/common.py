"""What the checks on a container's boundary share: its engine, and how it is started with GPUs."""

from __future__ import annotations

from typing import Any

from ...facts.kernel import DeviceNode
from ..containers import CDI_GENERATE, docker_uses_cdi, nvidia_specs
from ..nvidia_devices import GPU_NODE
from ..reading import CannotJudge, Skip, SnapshotView, fact
from ..verdicts import Cause, Evidence, Finding, Remedy, about, fill_in, word

VARIABLE = "NVIDIA_VISIBLE_DEVICES"


def engine(view: SnapshotView) -> str:
    """The engine that runs the container, as its inside shows ("podman"); "" where it does not."""
    return fact(view.inside.host, "container") or ""


def image(view: SnapshotView) -> str:
    kind, _, reference = view.inside.location.partition(":")
    return word(reference) if kind == "image" else fill_in("IMAGE", "your image")


def need_host_gpus(view: SnapshotView) -> None:
    """Raises Skip where the host itself has no GPU that answers."""
    try:
        found = view.gpus
    except CannotJudge:
        raise Skip("the host's own driver lists no GPU") from None
    if not found:
        raise Skip("the host's driver reports no GPU")


def nodes(view: SnapshotView) -> list[DeviceNode] | None:
    """The GPUs' own device nodes inside; None where nobody looked."""
    found: list[DeviceNode] | None = fact(view.inside.kernel, "device_nodes")
    return None if found is None else [node for node in found if GPU_NODE.match(node.path)]


def inside(
    view: SnapshotView,
    cause: Cause,
    evidence: list[Evidence],
    again: bool = True,
    **params: Any,
) -> Finding:
    """The cause, found on the container. again: its remedy is to start it with its GPUs."""
    subjects = about("container", view.inside.location)
    advice = Remedy(cause.remedy, start_commands(view)) if again else None
    return cause.found(subjects, evidence, advice=advice, **params)


def start_commands(view: SnapshotView) -> list[str]:
    name, engines = engine(view), fact(view.machine.containers, "engines")
    specs = engines is not None and bool(nvidia_specs(view))
    device = f"--device nvidia.com/gpu=all {image(view)}"
    if name == "docker":
        ours = [one for one in engines or [] if one.name == "docker"]
        by_cdi = specs and any(map(docker_uses_cdi, ours))
        return [f"docker run {device}" if by_cdi else f"docker run --gpus all {image(view)}"]
    if name == "apptainer":
        return [f"apptainer run --nv {image(view)}"]
    return ([] if specs else [CDI_GENERATE]) + [f"podman run {device}"]
