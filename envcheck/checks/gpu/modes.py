"""Checks on the modes that a GPU is in: MIG, compute mode, persistence, vGPU licence, generation."""

from __future__ import annotations

from packaging.version import Version

from ...data.capabilities import capability
from ...data.cuda import rows
from ...data.products import is_data_centre
from ...data.versions import parse_version
from ..driver_state import container, on_windows, on_wsl, service
from ..gpus import cause, found, gpu_check, plural
from ..reading import Gpu, NotKnown, Skip, SnapshotView, Unavailable, known, need
from ..verdicts import Params, Passed, Verdicts

MIG_PENDING = cause("mig-change-pending")
MIG_EMPTY = cause("mig-without-instances")


@gpu_check(
    "GPU-011",
    title="A GPU with MIG on has instances",
    causes=(MIG_PENDING, MIG_EMPTY),
    about="With MIG on, a GPU offers its instances instead of itself. Without instances, CUDA and every"
    " framework see no device although nvidia-smi lists the GPU.",
    sources=["pytorch#95784; NVIDIA Multi-Instance GPU User Guide"],
)
def mig_has_instances(view: SnapshotView, gpu: Gpu) -> Verdicts:
    enabled = need(gpu.mig_enabled, "MIG")
    pending = known(gpu.mig_pending)
    if pending is not None and pending != enabled:
        mode = "on" if pending else "off"
        yield found(view, MIG_PENDING, gpu, "mig_enabled mig_pending", mode=mode)
    if not enabled:
        yield Passed("MIG is off")
    elif instances := need(gpu.mig_instances, "the MIG instances"):
        yield Passed(plural(len(instances), "MIG instance"))
    else:
        yield found(view, MIG_EMPTY, gpu, "mig_enabled mig_instances")


PROHIBITED = cause("compute-prohibited")
EXCLUSIVE = cause("compute-exclusive-and-taken")


ONE_THREAD = cause("compute-exclusive-thread")


@gpu_check(
    "GPU-014",
    title="The compute mode lets programs in",
    causes=(PROHIBITED, EXCLUSIVE, ONE_THREAD),
    about="In compute mode Prohibited no CUDA program can use the GPU. In Exclusive_Process one process at a"
    " time can, which a scheduler or MPS may need.",
    sources=["nvidia-smi(1), Compute Mode; cuda.h, CUDA_ERROR_DEVICE_UNAVAILABLE"],
)
def compute_mode_is_open(view: SnapshotView, gpu: Gpu) -> Verdicts:
    mode = need(gpu.compute_mode, "the compute mode")
    name = mode.lower().replace(" ", "_")
    mps = service(view, "nvidia-cuda-mps-control")
    shared = mps is not None and known(mps.running)
    taken = any(process.kind in ("C", "C+G") for process in known(gpu.processes) or [])
    if "prohibited" in name:
        yield found(view, PROHIBITED, gpu, "compute_mode")
    elif "thread" in name:
        yield found(view, ONE_THREAD, gpu, "compute_mode")
    elif "exclusive" in name and taken and not shared:
        yield found(view, EXCLUSIVE, gpu, "compute_mode processes")
    elif "exclusive" not in name and name != "default":
        raise NotKnown(f"the compute mode '{mode}'")
    else:
        yield Passed(mode)


NOT_PERSISTENT = cause("persistence-off")
DAEMON_IDLE = cause("persistence-off-beside-daemon")


@gpu_check(
    "GPU-015",
    title="Persistence keeps the driver ready on headless GPUs",
    causes=(NOT_PERSISTENT, DAEMON_IDLE),
    about="Without persistence mode or the persistence daemon, the driver stops a GPU when its last program"
    " ends and starts it for the next one. That takes seconds and loses settings.",
    sources=["NVIDIA Driver Persistence"],
)
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
        yield found(view, DAEMON_IDLE if running else NOT_PERSISTENT, gpu, "persistence")


UNLICENSED = cause("vgpu-unlicensed")


NO_LICENCE_SERVICE = cause("vgpu-licensing-not-installed")


@gpu_check(
    "GPU-017",
    title="The vGPU is licensed",
    causes=(UNLICENSED, NO_LICENCE_SERVICE),
    about="A virtual GPU without a licence starts at full speed and becomes slower and slower after some"
    " minutes; in the end CUDA is refused.",
    sources=["NVIDIA Virtual GPU Client Licensing User Guide"],
)
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
        cause = NO_LICENCE_SERVICE if lacks else UNLICENSED
        yield found(view, cause, gpu, "vgpu_licence virtualization", licence=licence)


TOO_OLD = cause("too-old-for-cuda")


@gpu_check(
    "GPU-020",
    title="Current CUDA makes code for the GPU's compute capability",
    causes=(TOO_OLD,),
    about="Each CUDA toolkit generates code for a range of compute capabilities; old ones are dropped, and"
    " code built by a newer toolkit does not run on them.",
    sources=["CMake, CMakeCUDAArchitecturesAll; NVIDIA CUDA Toolkit 13.0 release notes"],
)
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
        yield found(view, TOO_OLD, gpu, "compute_capability architecture", **params)
    elif entry.last_cuda:
        yield Passed(f"{called}: up to CUDA {entry.last_cuda}")
    else:
        yield Passed(f"{called}: CUDA {entry.first_cuda} and newer")
