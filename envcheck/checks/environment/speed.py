"""Checks on environment variables that keep a GPU from computing as fast as it could."""

from __future__ import annotations

from ..reading import NotKnown, SnapshotView, fact
from ..target import environment, framework_facts, need_gpus, title_of, variables
from ..verdicts import Passed, Verdicts, check, warn
from ..visible import visible
from .common import CUDA_GUIDE, major, misset

# Settings worth knowing that are no fault: they change how the framework computes or holds memory.
_CHOICES = (
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE",
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_ALLOCATOR",
    "TF_GPU_THREAD_MODE",
    "TF_DETERMINISTIC_OPS",
    "TF_CUDNN_DETERMINISTIC",
    "TF_CUDNN_USE_AUTOTUNE",
    "TF_ENABLE_CUBLAS_TENSOR_OP_MATH_FP32",
    "TF_ENABLE_CUDNN_TENSOR_OP_MATH_FP32",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_MODULE_LOADING",
)
# {variable: what it keeps from the Tensor Cores}
_SWITCHES = {
    "TF_DISABLE_CUBLAS_TENSOR_OP_MATH": "matrix products",
    "TF_DISABLE_CUDNN_TENSOR_OP_MATH": "convolutions",
    "TF_DISABLE_CUDNN_RNN_TENSOR_OP_MATH": "recurrent layers",
}


def is_true(value: str | None) -> bool:
    return (value or "").strip().lower() in ("1", "true", "yes", "on")


TF32_OFF = warn(
    "tf32-off",
    "TF32 is switched off",
    "{variable}={value} keeps 32-bit products off the Tensor Cores of {gpu}.",
    "Unset it, unless the full 32-bit precision is needed.",
)


@check(
    "ENV-004",
    title="TF32 is not switched off",
    causes=[TF32_OFF],
    about="On GPUs from Ampere on, products and convolutions of 32-bit numbers run on Tensor Cores in TF32,"
    " many times faster; NVIDIA_TF32_OVERRIDE=0 switches that off in every NVIDIA library of the process.",
    sources=("cuBLAS documentation, NVIDIA_TF32_OVERRIDE", "NVIDIA A100 architecture whitepaper"),
)
def tf32(view: SnapshotView) -> Verdicts:
    value = variables(view).get("NVIDIA_TF32_OVERRIDE")
    if value is None or value.strip() != "0":
        yield Passed(f"NVIDIA_TF32_OVERRIDE{' is not set' if value is None else f'={value}'}")
        return
    need_gpus(view)
    chosen = visible(view).chosen
    capable = [one.name or one.capability for one in chosen if major(one.capability) >= 8]
    if not capable and not all(major(one.capability) for one in chosen):
        raise NotKnown("whether the visible GPUs have TF32")
    if capable:
        others = " and others" if len(capable) > 1 else ""
        yield misset(view, TF32_OFF, "NVIDIA_TF32_OVERRIDE", gpu=capable[0] + others)
    else:
        yield Passed("NVIDIA_TF32_OVERRIDE=0, on GPUs without TF32")


BLOCKING = warn(
    "launch-blocking",
    "each kernel launch waits for the one before",
    "{variable}={value} makes the CPU wait for every kernel: training is slow.",
    "Unset it; it is for debugging.",
)


@check(
    "ENV-005",
    title="Kernels are launched without waiting",
    causes=[BLOCKING],
    about="CUDA_LAUNCH_BLOCKING=1 makes the CPU wait for every kernel, so that the GPU idles between them.",
    sources=(CUDA_GUIDE,),
)
def launch_blocking(view: SnapshotView) -> Verdicts:
    if variables(view).get("CUDA_LAUNCH_BLOCKING", "").strip() not in ("", "0"):
        yield misset(view, BLOCKING, "CUDA_LAUNCH_BLOCKING")
    else:
        yield Passed("CUDA_LAUNCH_BLOCKING is not set")


_STARTS = (
    "Kernels without code for the GPU are compiled for it at every start, which takes minutes."
)
_KEPT = "compiled kernels are not kept"
NOT_KEPT = warn(
    "kernel-cache-off",
    _KEPT,
    f"{{variable}}={{value}} switches the driver's cache of compiled kernels off. {_STARTS}",
    "Unset CUDA_CACHE_DISABLE (or set it to 0): the second start takes them from the cache.",
)
NOT_WRITABLE = warn(
    "kernel-cache-not-writable",
    _KEPT,
    f"Nothing can be written to {{variable}}={{value}}, the driver's cache of compiled kernels. {_STARTS}",
    "Let it name a directory that this user may write to, or unset it (then it is ~/.nv/ComputeCache).",
)
TOO_SMALL = warn(
    "kernel-cache-small",
    _KEPT,
    f"{{variable}}={{value}} leaves the driver's cache of compiled kernels fewer bytes than the 256 MiB that"
    f" older drivers give it: a framework's kernels drive each other out of it. {_STARTS}",
    "Unset it, or set it to 4294967296, which is the most.",
)
FORCED = warn(
    "kernels-always-compiled",
    "kernels are compiled although the build has them",
    "{variable}={value} makes the driver ignore the code that a program has for the GPU, and compile all"
    " kernels when they are loaded.",
    "Unset it; it is for trying whether a program would run on a later GPU.",
)
_CACHE = 256 << 20


@check(
    "ENV-016",
    title="Kernels are compiled once",
    causes=[NOT_KEPT, NOT_WRITABLE, TOO_SMALL, FORCED],
    about="Where a program has no code for the GPU, the driver compiles its PTX and keeps the result in a"
    " cache. CUDA_CACHE_DISABLE=1, a CUDA_CACHE_PATH that is not writable, and a small CUDA_CACHE_MAXSIZE"
    " make each start as slow as the first.",
    sources=(CUDA_GUIDE, "FORTH-ModelBasedTracker/HandTracker#7"),
)
def kernel_cache(view: SnapshotView) -> Verdicts:
    values = variables(view)
    size = values.get("CUDA_CACHE_MAXSIZE", "").strip()
    off = values.get("CUDA_CACHE_DISABLE", "").strip() not in ("", "0")
    found = []
    if off:
        found.append(misset(view, NOT_KEPT, "CUDA_CACHE_DISABLE"))
    elif fact(environment(view), "cuda_cache_writable") is False:
        found.append(misset(view, NOT_WRITABLE, "CUDA_CACHE_PATH"))
    elif size.isdecimal() and int(size[:20]) < _CACHE:
        found.append(misset(view, TOO_SMALL, "CUDA_CACHE_MAXSIZE"))
    if values.get("CUDA_FORCE_PTX_JIT", "").strip() not in ("", "0"):
        found.append(misset(view, FORCED, "CUDA_FORCE_PTX_JIT"))
    yield from found
    if not found:
        yield Passed("the driver keeps the kernels that it compiles")


TENSOR_CORES_OFF = warn(
    "tensor-cores-off",
    "a variable switches Tensor Cores off",
    "{variable}={value} switches Tensor Cores off for {operations}.",
    "Unset it.",
)


@check(
    "ENV-010",
    title="Nothing in the environment switches Tensor Cores off",
    causes=[TENSOR_CORES_OFF],
    about="NVIDIA's TensorFlow reads TF_DISABLE_CUBLAS_TENSOR_OP_MATH and similar variables, which keep"
    " Tensor Cores from being used. Settings that are choices are shown as a detail.",
    sources=("NVIDIA's TensorFlow user guide, environment variables",),
)
def settings(view: SnapshotView) -> Verdicts:
    values = variables(view)
    switched = [name for name in _SWITCHES if is_true(values.get(name))]
    for name in switched:
        yield misset(view, TENSOR_CORES_OFF, name, operations=_SWITCHES[name])
    if not switched:
        shown = [f"{name}={values[name]}" for name in _CHOICES if name in values]
        for one in framework_facts(view):
            given = ", ".join(f"{name} {value}" for name, value in one.settings.items() if value)
            shown += [f"{title_of(one)}: {given}"] if one.settings else []
        yield Passed("; ".join(shown) or "nothing is set")
