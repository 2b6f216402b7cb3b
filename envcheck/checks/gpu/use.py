"""The check on who is using the GPUs before anything is started."""

from __future__ import annotations

from ..driver_state import NO_GPUS, container, on_windows, on_wsl, service
from ..gpus import found, judge_gpus, minor_of
from ..reading import Gpu, SnapshotView, known, need
from ..target import variables_if_known
from ..verdicts import Params, Passed, Remedy, Verdicts, check, warn

FULL = 0.9  # of the memory in use: TensorFlow and JAX ask for nearly all that there is
HELD = 0.25  # of the memory in use without a process that owns it
HELD_MIB = 2048
_MPS = "nvidia-cuda-mps-control"
_GROWTH = {
    "TF_FORCE_GPU_ALLOW_GROWTH": "export TF_FORCE_GPU_ALLOW_GROWTH=true  # TensorFlow",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "export XLA_PYTHON_CLIENT_PREALLOCATE=false  # JAX",
}

MEMORY_FULL = warn(
    "memory-full",
    "has little free memory",
    "{used} of {total} MiB are in use{by}: what starts now will run out of memory.",
)
ORPHANED = warn(
    "memory-without-process",
    "has memory in use without a process",
    "{used} MiB are in use and no process is listed: a crashed job or a container may hold them.",
    "Find out who has the device open, and stop it if it is a leftover.",
    "sudo fuser -v /dev/nvidia*",
    "docker ps",
)
IDLE_MPS = warn(
    "idle-mps-daemon",
    "an unused MPS daemon is running",
    "An MPS control daemon is running, nothing uses it, and its GPUs are not in the compute mode"
    " EXCLUSIVE_PROCESS, which is meant for it: CUDA programs of its user go through its server, and hang or"
    " fail with it.",
    "Stop it, unless somebody needs it; if it is wanted, set the mode and start it again.",
    "echo quit | sudo nvidia-cuda-mps-control",
    "sudo nvidia-smi -c EXCLUSIVE_PROCESS  # where MPS is wanted, then",
    "sudo nvidia-cuda-mps-control -d",
)


@check(
    "GPU-016",
    title="The GPUs' memory is free",
    causes=(MEMORY_FULL, ORPHANED, IDLE_MPS),
    about="TensorFlow and JAX request nearly all memory when training starts. A TensorFlow that finds no"
    " free memory reports 'cuDNN failed to initialize' instead.",
    sources=["nvidia-smi(1), Processes; NVIDIA Multi-Process Service; tensorflow#32548"],
    follows=NO_GPUS,
)
def memory_is_free(view: SnapshotView) -> Verdicts:
    yield from judge_gpus(view, lambda gpu: _memory(view, gpu))
    daemon = service(view, _MPS)
    modes = [(known(gpu.compute_mode) or "").lower() for gpu in view.gpus]
    computing = [known(gpu.processes) for gpu in view.gpus]
    used = any(p is None or any("C" in one.kind for one in p) for p in computing)
    meant = used or any("exclusive" in mode for mode in modes)
    if daemon is not None and known(daemon.running) and not meant:
        running = view.evidence("machine.kernel.services", f"{_MPS} is running")
        shown = [view.gpu_evidence(gpu, "compute_mode") for gpu in view.gpus[:1]]
        yield IDLE_MPS.found(evidence=[running, *shown])


def _memory(view: SnapshotView, gpu: Gpu) -> Verdicts:
    total = need(gpu.memory_total_mib, "the memory")
    used = need(gpu.memory_used_mib, "the memory in use")
    processes = known(gpu.processes)
    share = used / total if total else 0.0
    fields = "memory_used_mib memory_total_mib"
    if share >= FULL:
        names = [known(one.name) or f"process {one.pid}" for one in (processes or [])[:4]]
        shown = ", ".join(dict.fromkeys(name.rpartition("/")[2] for name in names))
        params: Params = {"used": used, "total": total, "by": f" by {shown}" if shown else ""}
        yield found(view, MEMORY_FULL, gpu, fields, advice=_make_room(view, gpu), **params)
    elif processes == [] and share >= HELD and used >= HELD_MIB and _sees_processes(view):
        yield found(view, ORPHANED, gpu, fields, used=used)
    else:
        yield Passed("memory is free")


def _make_room(view: SnapshotView, gpu: Gpu) -> Remedy:
    variables = {} if view.snapshot.target is None else variables_if_known(view)
    grow = [command for name, command in _GROWTH.items() if name not in variables]
    query = "nvidia-smi --query-compute-apps=gpu_bus_id,pid,used_memory,name --format=csv"
    return Remedy(
        "Find out who uses the GPU, and stop it if it is a leftover. If several processes share the GPU, let"
        " each of them take memory as it needs it.",
        [query, f"sudo fuser -v /dev/nvidia{minor_of(gpu)}", *grow],
    )


def _sees_processes(view: SnapshotView) -> bool:
    """Whether the list of processes is complete: not in a container, on Windows, or from a saved file."""
    known_place = view.machine.host is not None and view.machine.origin == "live"
    return known_place and not (container(view) or on_wsl(view) or on_windows(view))
