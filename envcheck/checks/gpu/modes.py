"""Checks on the modes that a GPU is in: MIG, compute mode, persistence, vGPU licence, generation."""

from __future__ import annotations

from packaging.version import Version

from ...data.capabilities import capability
from ...data.cuda import rows
from ...data.products import is_data_centre
from ...data.versions import parse_version
from ..declared import declared_causes
from ..driver_state import container, on_windows, on_wsl, service
from ..gpus import found, gpu_check, plural
from ..reading import Gpu, NotKnown, Skip, SnapshotView, Unavailable, known, need
from ..verdicts import Params, Passed, Verdicts

CAUSE = declared_causes(__name__)


@gpu_check("GPU-011")
def mig_has_instances(view: SnapshotView, gpu: Gpu) -> Verdicts:
    enabled = need(gpu.mig_enabled, "MIG")
    pending = known(gpu.mig_pending)
    if pending is not None and pending != enabled:
        mode = "on" if pending else "off"
        yield found(view, CAUSE["mig-change-pending"], gpu, "mig_enabled mig_pending", mode=mode)
    if not enabled:
        yield Passed("MIG is off")
    elif instances := need(gpu.mig_instances, "the MIG instances"):
        yield Passed(plural(len(instances), "MIG instance"))
    else:
        yield found(view, CAUSE["mig-without-instances"], gpu, "mig_enabled mig_instances")


@gpu_check("GPU-014")
def compute_mode_is_open(view: SnapshotView, gpu: Gpu) -> Verdicts:
    mode = need(gpu.compute_mode, "the compute mode")
    name = mode.lower().replace(" ", "_")
    mps = service(view, "nvidia-cuda-mps-control")
    shared = mps is not None and known(mps.running)
    taken = any(process.kind in ("C", "C+G") for process in known(gpu.processes) or [])
    if "prohibited" in name:
        yield found(view, CAUSE["compute-prohibited"], gpu, "compute_mode")
    elif "thread" in name:
        yield found(view, CAUSE["compute-exclusive-thread"], gpu, "compute_mode")
    elif "exclusive" in name and taken and not shared:
        yield found(view, CAUSE["compute-exclusive-and-taken"], gpu, "compute_mode processes")
    elif "exclusive" not in name and name != "default":
        raise NotKnown(f"the compute mode '{mode}'")
    else:
        yield Passed(mode)


@gpu_check("GPU-015")
def persistence_is_on(view: SnapshotView, gpu: Gpu) -> Verdicts:
    if on_windows(view) or on_wsl(view):
        raise Skip("Windows has no persistence mode")
    daemon = service(view, "nvidia-persistenced")
    draws = any("G" in process.kind for process in known(gpu.processes) or [])
    running = daemon is not None and known(daemon.running)
    if running and known(gpu.persistence) is None:
        yield Passed("nvidia-persistenced is running")
    elif need(gpu.persistence, "the persistence mode"):
        yield Passed("on")
    elif draws or not is_data_centre(known(gpu.name) or "") or container(view):
        yield Passed("off, which does not matter here")
    elif isinstance(gpu.processes, Unavailable) and gpu.processes.unavailable == "not-collected":
        need(gpu.processes, "whether anything draws on it")
    else:
        yield found(
            view,
            CAUSE["persistence-off-beside-daemon"] if running else CAUSE["persistence-off"],
            gpu,
            "persistence",
        )


@gpu_check("GPU-017")
def vgpu_is_licensed(view: SnapshotView, gpu: Gpu) -> Verdicts:
    licence = need(gpu.vgpu_licence, "a vGPU licence")
    status = licence.lower()
    if status.startswith("licensed"):
        yield Passed(licence)
    elif not status.startswith("unlicensed"):
        raise NotKnown(f"the licence status '{licence}'")
    else:
        daemon = service(view, "nvidia-gridd")
        lacks = daemon is not None and known(daemon.installed) is False
        cause = CAUSE["vgpu-licensing-not-installed"] if lacks else CAUSE["vgpu-unlicensed"]
        yield found(view, cause, gpu, "vgpu_licence virtualization", licence=licence)


@gpu_check("GPU-020")
def capability_is_current(view: SnapshotView, gpu: Gpu) -> Verdicts:
    own = need(gpu.compute_capability, "the compute capability")
    entry = capability(own)
    if entry is None:
        raise NotKnown(f"which CUDA makes code for compute capability {own}")
    called, last = f"{own} ({entry.architecture})", parse_version(entry.last_cuda)
    if last is not None and last < Version(str(rows()[0].version.major - 1)):
        params: Params = {
            "cuda": entry.last_cuda,
            "capability": own,
            "architecture": entry.architecture,
        }
        yield found(
            view, CAUSE["too-old-for-cuda"], gpu, "compute_capability architecture", **params
        )
    elif entry.last_cuda:
        yield Passed(f"{called}: up to CUDA {entry.last_cuda}")
    else:
        yield Passed(f"{called}: CUDA {entry.first_cuda} and newer")
