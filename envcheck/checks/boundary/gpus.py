"""Checks on a container seen from both sides: can envcheck look into it, and did the host's GPUs arrive."""

from __future__ import annotations

from ...facts.gpu import CudaDevice
from ...facts.view import driver_gpus
from ..declared import declared_causes
from ..reading import CannotJudge, Gpu, Skip, SnapshotView, fact, facts_of, known
from ..verdicts import Params, Passed, Verdicts, check, gpu_subject
from .common import VARIABLE, inside, need_host_gpus, nodes

CAUSE = declared_causes(__name__)


@check("BND-001")
def can_be_looked_into(view: SnapshotView) -> Verdicts:
    interpreter = facts_of(view.inside.interpreter, "the container's inside")
    yield Passed(f"Python {interpreter.version} at {interpreter.executable}")


@check("BND-002")
def gpus_arrive(view: SnapshotView) -> Verdicts:
    need_host_gpus(view)
    path, seen = _listed(view)
    total = len(view.gpus)
    missing = [gpu for gpu in view.gpus if not any(_same(gpu, one) for one in seen)]
    chosen = _chosen(view, len(seen)) if missing and seen else ""
    if not missing or chosen:
        yield Passed(f"{len(seen) if chosen else total} of {total}{chosen and f': {chosen}'}")
        return
    names = ", ".join(gpu_subject(gpu).text for gpu in missing[:3])
    evidence = [view.evidence("machine.nvml.gpu_count", total), view.evidence(path, len(seen))]
    if (given := nodes(view)) is not None:
        shown = ", ".join(node.path for node in given) or "none of a GPU"
        evidence.append(view.evidence("target.kernel.device_nodes", shown))
    more = " …" if len(missing) > 3 else ""
    params: Params = {"arrived": len(seen) or "None", "total": total, "missing": names + more}
    yield inside(view, CAUSE["gpus-missing"], evidence, **params)


def _listed(view: SnapshotView) -> tuple[str, list[Gpu] | list[CudaDevice]]:
    """(the fact's path, the GPUs that are seen inside); raises Skip if nothing inside lists them."""
    try:
        return "target.nvml.gpu_count", driver_gpus(view.inside)
    except CannotJudge:
        pass
    devices = fact(view.inside.cuda, "devices")
    if devices is not None:
        return "target.cuda.device_count", devices
    if nodes(view) == []:  # nothing can list GPUs here
        return "target.kernel.device_nodes", []
    raise Skip("neither NVML, nvidia-smi nor libcuda lists GPUs inside")


def _same(outside: Gpu, within: Gpu | CudaDevice) -> bool:
    for field in ("pci_address", "uuid"):
        ours, theirs = known(getattr(outside, field)), known(getattr(within, field))
        if ours and theirs:
            return bool(ours == theirs)
    return False


def _chosen(view: SnapshotView, seen: int) -> str:
    value = (fact(view.inside.environment, "variables") or {}).get(VARIABLE, "").strip()
    if value.lower() not in ("", "void", "none", "all"):
        return f"{VARIABLE}={value}" if len(value.split(",")) == seen else ""
    given, ours = nodes(view), view.inside.location.startswith("image:")  # with all GPUs
    by_hand = not ours and given is not None and len(given) == seen
    return "it was started with these devices alone" if by_hand else ""
