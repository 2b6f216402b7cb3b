"""Checks on environment variables that keep a GPU from computing as fast as it could."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...facts.missing import NotKnown
from ...facts.target import FRAMEWORKS
from ...facts.view import SnapshotView
from ...findings.model import Passed, Verdict
from ..registry import check
from ..target import framework_facts, need_gpus, variables
from ..visible import visible
from .common import CUDA_GUIDE, is_on, major, misset

_TRUE = ("1", "true", "yes", "on")

# Settings worth knowing that are no fault: they change how the framework computes or holds memory.
_TOLD = (
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


class Brake(NamedTuple):
    """A variable that costs speed while it is set to a true value."""

    name: str
    effect: str
    source: str


_BRAKES = (
    Brake(
        "TF_DISABLE_CUBLAS_TENSOR_OP_MATH",
        "switches Tensor Cores off for matrix products",
        "NVIDIA's TensorFlow user guide, environment variables",
    ),
    Brake(
        "TF_DISABLE_CUDNN_TENSOR_OP_MATH",
        "switches Tensor Cores off for convolutions",
        "NVIDIA's TensorFlow user guide, environment variables",
    ),
    Brake(
        "TF_DISABLE_CUDNN_RNN_TENSOR_OP_MATH",
        "switches Tensor Cores off for recurrent layers",
        "NVIDIA's TensorFlow user guide, environment variables",
    ),
)


def is_true(value: str | None) -> bool:
    return (value or "").strip().lower() in _TRUE


@check(
    "ENV-004",
    title="TF32 is not switched off",
    problem="TF32 is switched off",
    about=(
        "On GPUs from Ampere on, matrix products and convolutions of 32-bit numbers run on Tensor Cores "
        "in TF32, many times faster. NVIDIA_TF32_OVERRIDE=0 switches that off in every NVIDIA library of "
        "the process, whatever the framework asks for. A warning where a visible GPU has TF32; on older "
        "ones it changes nothing."
    ),
    sources=("cuBLAS documentation, NVIDIA_TF32_OVERRIDE", "NVIDIA A100 architecture whitepaper"),
)
def tf32(view: SnapshotView) -> Iterator[Verdict]:
    value = variables(view).get("NVIDIA_TF32_OVERRIDE")
    if value is None:
        yield Passed("NVIDIA_TF32_OVERRIDE is not set")
        return
    if value.strip() != "0":
        yield Passed(f"NVIDIA_TF32_OVERRIDE={value}")
        return
    need_gpus(view)
    chosen = visible(view).chosen
    capable = [one.name or one.capability for one in chosen if major(one.capability) >= 8]
    if not capable and not all(major(one.capability) for one in chosen):
        raise NotKnown("whether the visible GPUs have TF32")
    if not capable:
        yield Passed("NVIDIA_TF32_OVERRIDE=0, on GPUs without TF32")
        return
    yield misset(
        view,
        "NVIDIA_TF32_OVERRIDE",
        f"NVIDIA_TF32_OVERRIDE=0 keeps 32-bit products off the Tensor Cores of {capable[0]}"
        f"{' and others' if len(capable) > 1 else ''}.",
        "Unset it, unless the full 32-bit precision is needed.",
    )


@check(
    "ENV-005",
    title="Kernels are launched without waiting",
    problem="each kernel launch waits for the one before",
    about=(
        "CUDA_LAUNCH_BLOCKING=1 makes the CPU wait for every kernel. It is a debugging aid; left on, "
        "the GPU idles between kernels and training is slower by a lot. A warning."
    ),
    sources=(CUDA_GUIDE,),
)
def launch_blocking(view: SnapshotView) -> Iterator[Verdict]:
    value = variables(view).get("CUDA_LAUNCH_BLOCKING")
    if not is_on(value):
        yield Passed("CUDA_LAUNCH_BLOCKING is not set")
        return
    yield misset(
        view,
        "CUDA_LAUNCH_BLOCKING",
        f"CUDA_LAUNCH_BLOCKING={value} makes the CPU wait for every kernel: training is slow.",
        "Unset it; it is for debugging.",
    )


@check(
    "ENV-010",
    title="Nothing in the environment switches Tensor Cores off",
    problem="a variable switches Tensor Cores off",
    about=(
        "NVIDIA's TensorFlow reads TF_DISABLE_CUBLAS_TENSOR_OP_MATH and its like, which keep Tensor Cores "
        "from being used; a warning for each that is set. Automatic mixed precision, XLA flags and "
        "settings of GPU memory are choices: what is set is shown as a detail, together with what the "
        "frameworks themselves report."
    ),
    sources=tuple(dict.fromkeys(brake.source for brake in _BRAKES)),
)
def settings(view: SnapshotView) -> Iterator[Verdict]:
    values = variables(view)
    braked = [brake for brake in _BRAKES if is_true(values.get(brake.name))]
    for brake in braked:
        yield misset(view, brake.name, f"{brake.name}={values[brake.name]} {brake.effect}.")
    if not braked:
        told = [f"{name}={values[name]}" for name in _TOLD if name in values]
        told += [
            f"{FRAMEWORKS[one.name]}: "
            + ", ".join(f"{name} {value}" for name, value in one.settings.items() if value)
            for one in framework_facts(view)
            if one.settings
        ]
        yield Passed("; ".join(told) or "nothing is set")
