"""Checks on environment variables that make a GPU slow, or decide how it computes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .driver_common import NO_GPUS
from .fitness import code_for
from .model import CannotJudge, Finding, NotKnown, Passed, Remedy, Skip
from .registry import Verdict, check
from .target import FRAMEWORKS, framework_facts, need_gpus, sees_gpus, variables
from .view import View, known
from .visible import visible

_CUDA_GUIDE = "CUDA C++ programming guide, environment variables"
_MIB = 1024 * 1024
_SMALLEST_CACHE = 256 * _MIB  # the default of CUDA's cache for many years

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
    area="environment",
    title="TF32 is not switched off",
    about=(
        "On GPUs from Ampere on, matrix products and convolutions of 32-bit numbers run on Tensor Cores "
        "in TF32, many times faster. NVIDIA_TF32_OVERRIDE=0 switches that off in every NVIDIA library of "
        "the process, whatever the framework asks for. A warning where a visible GPU has TF32; on older "
        "ones it changes nothing."
    ),
    sources=("cuBLAS documentation, NVIDIA_TF32_OVERRIDE", "NVIDIA A100 architecture whitepaper"),
)
def tf32(view: View) -> Iterator[Verdict]:
    value = variables(view).get("NVIDIA_TF32_OVERRIDE")
    if value is None:
        yield Passed("NVIDIA_TF32_OVERRIDE is not set")
        return
    if value.strip() != "0":
        yield Passed(f"NVIDIA_TF32_OVERRIDE={value}")
        return
    need_gpus(view)
    chosen = visible(view).chosen
    capable = [one.name or one.capability for one in chosen if _major(one.capability) >= 8]
    if not capable and not all(_major(one.capability) for one in chosen):
        raise NotKnown("whether the visible GPUs have TF32")
    if not capable:
        yield Passed("NVIDIA_TF32_OVERRIDE=0, on GPUs without TF32")
        return
    yield Finding(
        "warn",
        f"NVIDIA_TF32_OVERRIDE=0 keeps 32-bit products off the Tensor Cores of {capable[0]}"
        f"{' and others' if len(capable) > 1 else ''}.",
        subject="NVIDIA_TF32_OVERRIDE",
        evidence=[view.evidence("target.environment.variables", f"NVIDIA_TF32_OVERRIDE={value}")],
        remedy=Remedy(
            "Unset it, unless the full 32-bit precision is needed.", ["unset NVIDIA_TF32_OVERRIDE"]
        ),
    )


def _major(capability: str) -> int:
    found = re.match(r"\d+", capability)
    return int(found[0]) if found else 0


@check(
    "ENV-005",
    area="environment",
    title="Kernels are launched without waiting",
    about=(
        "CUDA_LAUNCH_BLOCKING=1 makes the CPU wait for every kernel. It is a debugging aid; left on, "
        "the GPU idles between kernels and training is slower by a lot. A warning."
    ),
    sources=(_CUDA_GUIDE,),
)
def launch_blocking(view: View) -> Iterator[Verdict]:
    value = variables(view).get("CUDA_LAUNCH_BLOCKING")
    if (value or "0").strip() in ("", "0"):
        yield Passed("CUDA_LAUNCH_BLOCKING is not set")
        return
    yield Finding(
        "warn",
        f"CUDA_LAUNCH_BLOCKING={value} makes the CPU wait for every kernel: training is slow.",
        subject="CUDA_LAUNCH_BLOCKING",
        evidence=[view.evidence("target.environment.variables", f"CUDA_LAUNCH_BLOCKING={value}")],
        remedy=Remedy("Unset it; it is for debugging.", ["unset CUDA_LAUNCH_BLOCKING"]),
    )


@check(
    "ENV-006",
    area="environment",
    title="CUDA keeps the kernels that it compiles",
    about=(
        "Where a framework brings PTX for a GPU and no machine code, the driver compiles it once, for "
        "minutes, and keeps the result in its cache. CUDA_CACHE_DISABLE=1, or a CUDA_CACHE_MAXSIZE of a "
        "few megabytes, makes every start compile again; XLA's kernels go through the same cache. A "
        "warning for either."
    ),
    sources=(_CUDA_GUIDE, "tensorflow#47058"),
)
def kernel_cache(view: View) -> Iterator[Verdict]:
    values = variables(view)
    size = values.get("CUDA_CACHE_MAXSIZE")
    found = []
    if (values.get("CUDA_CACHE_DISABLE") or "0").strip() not in ("", "0"):
        found.append(("CUDA_CACHE_DISABLE", "switches CUDA's kernel cache off"))
    if size is not None and size.strip().isdecimal() and int(size) < _SMALLEST_CACHE:
        room = f"leaves the cache {int(size) / _MIB:.0f} MiB, less than CUDA's own default"
        found.append(("CUDA_CACHE_MAXSIZE", room))
    for name, effect in found:
        yield Finding(
            "warn",
            f"{name}={values[name]} {effect}: what the driver compiles is compiled again at every start.",
            subject=name,
            evidence=[view.evidence("target.environment.variables", f"{name}={values[name]}")],
            remedy=Remedy(
                "Leave the cache on, and large enough for a framework.",
                ["unset CUDA_CACHE_DISABLE", "export CUDA_CACHE_MAXSIZE=4294967296"],
            ),
        )
    if size and not size.strip().isdecimal():
        raise NotKnown(f"what CUDA makes of CUDA_CACHE_MAXSIZE={size}")
    if not found:
        yield Passed(f"CUDA_CACHE_MAXSIZE={size}" if size else "CUDA's cache is as it comes")


@check(
    "ENV-008",
    area="environment",
    title="TensorFlow may say why it sees no GPU",
    about=(
        "TF_CPP_MIN_LOG_LEVEL of 2 or more hides warnings, and with them the one line in which TensorFlow "
        "says which library it could not load. envcheck's own look at TensorFlow ignores the variable. A "
        "warning where TensorFlow sees no GPU on a machine that has some; otherwise a matter of taste."
    ),
    sources=("tensorflow#85311, #96707",),
    follows=(*NO_GPUS, "DRV-004", "FRM-005", "ENV-001", "FRM-002"),
)
def hidden_log(view: View) -> Iterator[Verdict]:
    value = variables(view).get("TF_CPP_MIN_LOG_LEVEL")
    if value is None or not value.strip().isdecimal() or int(value) < 2:
        yield Passed("TensorFlow's warnings are not hidden")
        return
    tensorflow = [one for one in framework_facts(view) if one.name == "tensorflow" and one.imported]
    blind = [one for one in tensorflow if known(one.gpus) is not None and not sees_gpus(one)]
    if not blind:
        yield Passed(f"TF_CPP_MIN_LOG_LEVEL={value}")
        return
    need_gpus(view)
    yield Finding(
        "warn",
        f"TF_CPP_MIN_LOG_LEVEL={value} hides the reason why TensorFlow sees no GPU.",
        subject="TF_CPP_MIN_LOG_LEVEL",
        evidence=[view.evidence("target.environment.variables", f"TF_CPP_MIN_LOG_LEVEL={value}")],
        remedy=Remedy("Unset it until the GPUs are seen.", ["unset TF_CPP_MIN_LOG_LEVEL"]),
    )


@check(
    "ENV-010",
    area="environment",
    title="Nothing in the environment switches Tensor Cores off",
    about=(
        "NVIDIA's TensorFlow reads TF_DISABLE_CUBLAS_TENSOR_OP_MATH and its like, which keep Tensor Cores "
        "from being used; a warning for each that is set. Automatic mixed precision, XLA flags and "
        "settings of GPU memory are choices: what is set is told as a detail, together with what the "
        "frameworks themselves report."
    ),
    sources=tuple(dict.fromkeys(brake.source for brake in _BRAKES)),
)
def settings(view: View) -> Iterator[Verdict]:
    values = variables(view)
    braked = [brake for brake in _BRAKES if is_true(values.get(brake.name))]
    for brake in braked:
        yield Finding(
            "warn",
            f"{brake.name}={values[brake.name]} {brake.effect}.",
            subject=brake.name,
            evidence=[
                view.evidence("target.environment.variables", f"{brake.name}={values[brake.name]}")
            ],
            remedy=Remedy("Unset it.", [f"unset {brake.name}"]),
        )
    if not braked:
        told = [f"{name}={values[name]}" for name in _TOLD if name in values]
        told += [
            f"{FRAMEWORKS[one.name]}: "
            + ", ".join(f"{name} {value}" for name, value in one.settings.items() if value)
            for one in framework_facts(view)
            if one.settings
        ]
        yield Passed("; ".join(told) or "nothing is set")


@check(
    "ENV-012",
    area="environment",
    title="The driver may choose between machine code and PTX",
    about=(
        "CUDA_FORCE_PTX_JIT=1 makes the driver ignore a framework's machine code and compile its PTX, for "
        "minutes at every first start; CUDA_DISABLE_PTX_JIT=1 forbids compiling, so that a GPU without "
        "machine code in the build runs nothing. Both are for testing. A warning for the first; for the "
        "second a failure where a framework has only PTX for a visible GPU."
    ),
    sources=(_CUDA_GUIDE,),
    follows=("PCI-001", "FRM-004"),
)
def ptx(view: View) -> Iterator[Verdict]:
    values = variables(view)
    forced = (values.get("CUDA_FORCE_PTX_JIT") or "0").strip() not in ("", "0")
    forbidden = (values.get("CUDA_DISABLE_PTX_JIT") or "0").strip() not in ("", "0")
    if not forced and not forbidden:
        yield Passed("neither CUDA_FORCE_PTX_JIT nor CUDA_DISABLE_PTX_JIT is set")
    if forced:
        yield Finding(
            "warn",
            "CUDA_FORCE_PTX_JIT is set: the driver compiles every kernel instead of using the machine "
            "code that is there.",
            subject="CUDA_FORCE_PTX_JIT",
            evidence=[
                view.evidence(
                    "target.environment.variables",
                    f"CUDA_FORCE_PTX_JIT={values['CUDA_FORCE_PTX_JIT']}",
                )
            ],
            remedy=Remedy("Unset it; it is for testing.", ["unset CUDA_FORCE_PTX_JIT"]),
        )
    if forbidden:
        yield _forbidden(view, values["CUDA_DISABLE_PTX_JIT"])


def _forbidden(view: View, value: str) -> Verdict:
    needing = _needs_ptx(view)
    if not needing:
        return Passed(f"CUDA_DISABLE_PTX_JIT={value}; nothing here is known to need PTX")
    return Finding(
        "fail",
        f"CUDA_DISABLE_PTX_JIT={value} forbids the driver to compile PTX, and {needing} has nothing else "
        "for this GPU: no kernel runs.",
        subject="CUDA_DISABLE_PTX_JIT",
        evidence=[view.evidence("target.environment.variables", f"CUDA_DISABLE_PTX_JIT={value}")],
        remedy=Remedy("Unset it.", ["unset CUDA_DISABLE_PTX_JIT"]),
    )


def _needs_ptx(view: View) -> str:
    """The first framework that has only PTX for a visible GPU; "" where none is known to."""
    try:
        capabilities = {one.capability for one in visible(view).chosen if _major(one.capability)}
    except CannotJudge:
        raise Skip("the compute capabilities of the GPUs are not known") from None
    unknown = []
    for one in framework_facts(view):
        built = known(one.built_capabilities) or []
        if any(code_for(capability, built).kind == "jit" for capability in capabilities):
            return FRAMEWORKS[one.name]
        if not built and known(one.cuda_build):
            unknown.append(FRAMEWORKS[one.name])
    if unknown:
        raise NotKnown(f"the capabilities that {unknown[0]} was built for")
    return ""
