"""The check on who is using the GPUs before anything is started."""

from __future__ import annotations

from ..declared import declared_causes
from ..driver_state import container, on_windows, on_wsl, service
from ..gpus import found, judge_gpus, minor_of
from ..reading import Gpu, NotKnown, SnapshotView, known, need
from ..target import framework, variables_if_known
from ..verdicts import Params, Passed, Remedy, Verdicts, check

CAUSE = declared_causes(__name__)

FULL = 0.9  # of the memory in use: TensorFlow and JAX ask for nearly all that there is
JAX_TAKES = 0.75  # "GPU memory allocation" in JAX's documentation; XLA_PYTHON_CLIENT_MEM_FRACTION
HELD = 0.25  # of the memory in use without a process that owns it
HELD_MIB = 2048
_MPS = "nvidia-cuda-mps-control"
_GROWTH = {
    "TF_FORCE_GPU_ALLOW_GROWTH": "export TF_FORCE_GPU_ALLOW_GROWTH=true  # TensorFlow",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "export XLA_PYTHON_CLIENT_PREALLOCATE=false  # JAX",
}


@check("GPU-016")
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
        yield CAUSE["idle-mps-daemon"].found(evidence=[running, *shown])


def _memory(view: SnapshotView, gpu: Gpu) -> Verdicts:
    total = need(gpu.memory_total_mib, "the memory")
    used = need(gpu.memory_used_mib, "the memory in use")
    if used > total:
        raise NotKnown(f"the memory in use: the driver says {used} of {total} MiB")
    processes = known(gpu.processes)
    share = used / total if total else 0.0
    fields = "memory_used_mib memory_total_mib"
    jax = _share_of_jax(view)
    if share >= FULL or share + jax > 1:
        names = [known(one.name) or f"process {one.pid}" for one in (processes or [])[:4]]
        shown = ", ".join(dict.fromkeys(name.rpartition("/")[2] for name in names))
        params: Params = {"used": used, "total": total, "by": f" by {shown}" if shown else ""}
        params["share"] = f"{jax:.0%}".rstrip("%")
        cause = CAUSE["memory-full"] if share >= FULL else CAUSE["no-room-for-jax"]
        yield found(view, cause, gpu, fields, advice=_make_room(view, gpu), **params)
    elif processes == [] and share >= HELD and used >= HELD_MIB and _sees_processes(view):
        yield found(view, CAUSE["memory-without-process"], gpu, fields, used=used)
    else:
        yield Passed("memory is free")


def _share_of_jax(view: SnapshotView) -> float:
    """The share of the memory that the target's JAX takes when it starts; 0.0 where it finds no GPU."""
    jax = None if view.snapshot.target is None else framework(view, "jax")
    if jax is None or not known(jax.gpus):
        return 0.0
    variables = variables_if_known(view)
    if variables.get("XLA_PYTHON_CLIENT_PREALLOCATE", "").lower() in ("false", "0"):
        return 0.0
    try:
        return float(variables.get("XLA_PYTHON_CLIENT_MEM_FRACTION", JAX_TAKES))
    except ValueError:
        return 0.0


def _make_room(view: SnapshotView, gpu: Gpu) -> Remedy:
    variables = {} if view.snapshot.target is None else variables_if_known(view)
    grow = [command for name, command in _GROWTH.items() if name not in variables]
    if _share_of_jax(view):
        grow = grow[-1:]
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
