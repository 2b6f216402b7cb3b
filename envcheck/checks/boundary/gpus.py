"""Checks on a container seen from both sides: what the host has, and what came through."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.gpu import CudaDevice, Gpu
from ...facts.missing import CannotJudge, Skip
from ...facts.view import SnapshotView, driver_gpus, facts_of
from ...findings.model import Finding, Passed, Verdict
from ...findings.subjects import about, gpu_subject
from ..driver_state import NO_GPUS
from ..registry import check
from .common import VARIABLE, fresh, need_host_gpus, nodes, with_gpus

_NONE = ("", "void", "none")


@check(
    "BND-001",
    title="envcheck can look into the container",
    problem="the container cannot be looked into",
    about="envcheck sends its collector into the container, where it runs in the first Python of 3.6 or newer"
    " on the PATH that the image's entrypoint leaves. Whatever keeps it from answering (the engine starts"
    " nothing, memory runs out, no answer in time) leaves everything inside unknown.",
    sources=("envcheck collect --target image:REF",),
    follows=("BND-010",),
)
def can_be_looked_into(view: SnapshotView) -> Iterator[Verdict]:
    interpreter = facts_of(view.inside.interpreter, "the container's inside")
    yield Passed(f"Python {interpreter.version} at {interpreter.executable}")


@check(
    "BND-002",
    title="The host's GPUs are in the container",
    problem="the container lacks GPUs of its host",
    about="GPUs come into a container by CDI, by NVIDIA's runtime or hook, or by hand, and what does not come"
    " is not there: no engine warns. podman before 5 accepts --gpus and does nothing. GPUs of the host and"
    " of the inside are matched by PCI address and UUID. A failure where some do not arrive, unless"
    " NVIDIA_VISIBLE_DEVICES or a choice of CDI devices names a part of them: then that is said.",
    sources=("podman-run(1), --gpus", "NVIDIA Container Toolkit's documentation", "cdi.md"),
    follows=(*NO_GPUS, "BND-003", "BND-005"),
)
def gpus_arrive(view: SnapshotView) -> Iterator[Verdict]:
    inside = view.inside
    need_host_gpus(view)
    told = _listed(view)
    outside = view.gpus
    if told is None:
        raise Skip("neither NVML, nvidia-smi nor libcuda lists GPUs inside")
    path, seen = told
    missing = [gpu for gpu in outside if not any(_same(gpu, one) for one in seen)]
    if not missing:
        yield Passed(f"{len(outside)} of {len(outside)}")
        return
    chosen = _chosen(view, len(seen))
    if seen and chosen:
        yield Passed(f"{len(seen)} of {len(outside)}: {chosen}")
        return
    names = ", ".join(gpu_subject(gpu).text for gpu in missing[:3]) + (
        " …" if len(missing) > 3 else ""
    )
    what = "none" if not seen else f"only {len(seen)}"
    yield Finding(
        "fail",
        f"The host has {len(outside)} GPU{'' if len(outside) == 1 else 's'}, and {what} of them"
        f" {'is' if len(seen) < 2 else 'are'} in the container: {names} did not arrive.",
        subjects=about("container", inside.location),
        evidence=[
            _count(view, "machine.nvml.gpu_count", len(outside)),
            _count(view, path, len(seen)),
            *_nodes_evidence(view),
        ],
        remedy=with_gpus(view, "Start the container with all GPUs."),
    )


def _listed(view: SnapshotView) -> tuple[str, list[Gpu] | list[CudaDevice]] | None:
    """(the fact's path, the GPUs that are seen inside); None where nothing inside lists them."""
    try:
        return "target.nvml.gpu_count", driver_gpus(view.inside)
    except CannotJudge:
        pass
    cuda = view.inside.cuda
    devices = None if cuda is None or cuda.facts is None else known(cuda.facts.devices)
    if devices is not None:
        return "target.cuda.device_count", devices
    found = nodes(view)
    if found == []:  # nothing can list GPUs here
        return "target.kernel.device_nodes", []
    return None


def _same(outside: Gpu, inside: Gpu | CudaDevice) -> bool:
    for field in ("pci_address", "uuid"):
        ours, theirs = known(getattr(outside, field)), known(getattr(inside, field))
        if ours and theirs:
            return bool(ours == theirs)
    return False


def _chosen(view: SnapshotView, seen: int) -> str:
    """What names a part of the GPUs on purpose; "" where nothing does."""
    environment = view.inside.environment
    variables = (
        {} if environment is None or environment.facts is None else environment.facts.variables
    )
    value = variables.get(VARIABLE, "").strip()
    if value.lower() not in (*_NONE, "all"):
        return f"{VARIABLE}={value}" if len(value.split(",")) == seen else ""
    given = nodes(view)
    if not fresh(view) and given is not None and len(given) == seen:
        return "it was started with these devices alone"
    return ""


def _count(view: SnapshotView, path: str, number: int) -> Evidence:
    return view.evidence(path, number)


def _nodes_evidence(view: SnapshotView) -> list[Evidence]:
    found = nodes(view)
    if found is None:
        return []
    shown = ", ".join(node.path for node in found) or "none of a GPU"
    return [view.evidence("target.kernel.device_nodes", shown)]
