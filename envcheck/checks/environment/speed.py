"""Checks on environment variables that keep a GPU from computing as fast as it could."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import CannotJudge, NotKnown, Skip
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ..driver_state import NO_GPUS_THERE
from ..fitness import code_for
from ..registry import check
from ..target import framework, framework_facts, need_gpus, sees_gpus, title_of, variables
from ..visible import visible
from .common import CUDA_GUIDE, is_on, major, misset, variable_cause

_TRUE = ("1", "true", "yes", "on")

# Settings worth knowing that are no fault: they change how the framework computes or holds memory.
_CHOICES = (
    *("TF_ENABLE_AUTO_MIXED_PRECISION", "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE"),
    *("TF_XLA_FLAGS", "XLA_FLAGS", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR"),
    *("TF_GPU_THREAD_MODE", "TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC"),
    *("TF_CUDNN_USE_AUTOTUNE", "TF_ENABLE_CUBLAS_TENSOR_OP_MATH_FP32"),
    *("TF_ENABLE_CUDNN_TENSOR_OP_MATH_FP32", "XLA_PYTHON_CLIENT_PREALLOCATE"),
    *("XLA_PYTHON_CLIENT_MEM_FRACTION", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"),
    *("CUBLAS_WORKSPACE_CONFIG", "CUDA_MODULE_LOADING"),
)
# {variable: what it keeps from the Tensor Cores}
_SWITCHES = {
    "TF_DISABLE_CUBLAS_TENSOR_OP_MATH": "matrix products",
    "TF_DISABLE_CUDNN_TENSOR_OP_MATH": "convolutions",
    "TF_DISABLE_CUDNN_RNN_TENSOR_OP_MATH": "recurrent layers",
}
_SMALLEST_CACHE = 256 * 1024 * 1024  # the default of CUDA's cache for many years


def is_true(value: str | None) -> bool:
    return (value or "").strip().lower() in _TRUE


TF32_OFF = variable_cause(
    "tf32-off",
    "TF32 is switched off",
    "{variable}={value} keeps 32-bit products off the Tensor Cores of {gpu}.",
    "Unset it, unless the full 32-bit precision is needed.",
)


@check(
    "ENV-004",
    title="TF32 is not switched off",
    causes=[TF32_OFF],
    about="On GPUs from Ampere on, matrix products and convolutions of 32-bit numbers run on Tensor Cores in"
    " TF32, many times faster. NVIDIA_TF32_OVERRIDE=0 switches that off in every NVIDIA library of the"
    " process, whatever the framework asks for. On older GPUs it changes nothing.",
    sources=("cuBLAS documentation, NVIDIA_TF32_OVERRIDE", "NVIDIA A100 architecture whitepaper"),
)
def tf32(view: SnapshotView) -> Iterator[Verdict]:
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


BLOCKING = variable_cause(
    "launch-blocking",
    "each kernel launch waits for the one before",
    "{variable}={value} makes the CPU wait for every kernel: training is slow.",
    "Unset it; it is for debugging.",
)


@check(
    "ENV-005",
    title="Kernels are launched without waiting",
    causes=[BLOCKING],
    about="CUDA_LAUNCH_BLOCKING=1 makes the CPU wait for every kernel. It is a debugging aid; with it the GPU"
    " idles between kernels and training is much slower.",
    sources=(CUDA_GUIDE,),
)
def launch_blocking(view: SnapshotView) -> Iterator[Verdict]:
    if is_on(variables(view).get("CUDA_LAUNCH_BLOCKING")):
        yield misset(view, BLOCKING, "CUDA_LAUNCH_BLOCKING")
    else:
        yield Passed("CUDA_LAUNCH_BLOCKING is not set")


def _cache_cause(key: str, effect: str) -> Cause:
    return Cause(
        key,
        "warn",
        "compiled kernels are not kept",
        "{variable}={value} "
        + f"{effect}: what the driver compiles is compiled again at every start.",
        "Leave the cache on, and large enough for a framework.",
        ["unset CUDA_CACHE_DISABLE", "export CUDA_CACHE_MAXSIZE=4294967296"],
    )


CACHE_OFF = _cache_cause("cache-off", "switches CUDA's kernel cache off")
CACHE_SMALL = _cache_cause("cache-small", "gives the cache less than CUDA's own default of 256 MiB")


@check(
    "ENV-006",
    title="CUDA keeps the kernels that it compiles",
    causes=[CACHE_OFF, CACHE_SMALL],
    about="If a framework brings PTX for a GPU and no machine code, the driver compiles it once, for"
    " minutes, and keeps the result in its cache. CUDA_CACHE_DISABLE=1, or a CUDA_CACHE_MAXSIZE of a few"
    " megabytes, makes every start compile again; XLA's kernels go through the same cache.",
    sources=(CUDA_GUIDE, "tensorflow#47058"),
)
def kernel_cache(view: SnapshotView) -> Iterator[Verdict]:
    values = variables(view)
    size = values.get("CUDA_CACHE_MAXSIZE", "").strip()
    is_off = is_on(values.get("CUDA_CACHE_DISABLE"))
    is_small = size.isdecimal() and int(size) < _SMALLEST_CACHE
    if is_off:
        yield misset(view, CACHE_OFF, "CUDA_CACHE_DISABLE")
    if is_small:
        yield misset(view, CACHE_SMALL, "CUDA_CACHE_MAXSIZE")
    if size and not size.isdecimal():
        raise NotKnown(f"what CUDA makes of CUDA_CACHE_MAXSIZE={size}")
    if not is_off and not is_small:
        yield Passed(f"CUDA_CACHE_MAXSIZE={size}" if size else "CUDA's cache has its defaults")


LOG_HIDDEN = variable_cause(
    "log-hidden",
    "TensorFlow's messages are switched off",
    "{variable}={value} hides the reason why TensorFlow sees no GPU.",
    "Unset it until the GPUs are seen.",
)


@check(
    "ENV-008",
    title="TensorFlow may say why it sees no GPU",
    causes=[LOG_HIDDEN],
    about="TF_CPP_MIN_LOG_LEVEL of 2 or more hides warnings, and with them the one line in which TensorFlow"
    " says which library it could not load. envcheck's own look at TensorFlow ignores the variable. A"
    " warning only if TensorFlow sees no GPU on a machine that has some.",
    sources=("tensorflow#85311, #96707",),
    follows=(*NO_GPUS_THERE, "DRV-004", "FRM-005", "ENV-001", "FRM-002"),
)
def hidden_log(view: SnapshotView) -> Iterator[Verdict]:
    value = variables(view).get("TF_CPP_MIN_LOG_LEVEL", "").strip()
    if not value.isdecimal() or int(value) < 2:
        yield Passed("TensorFlow's warnings are not hidden")
        return
    facts = framework(view, "tensorflow")
    if facts is None or not facts.imported or known(facts.gpus) is None or sees_gpus(facts):
        yield Passed(f"TF_CPP_MIN_LOG_LEVEL={value}")
        return
    need_gpus(view)
    yield misset(view, LOG_HIDDEN, "TF_CPP_MIN_LOG_LEVEL")


TENSOR_CORES_OFF = variable_cause(
    "tensor-cores-off",
    "a variable switches Tensor Cores off",
    "{variable}={value} switches Tensor Cores off for {operations}.",
)


@check(
    "ENV-010",
    title="Nothing in the environment switches Tensor Cores off",
    causes=[TENSOR_CORES_OFF],
    about="NVIDIA's TensorFlow reads TF_DISABLE_CUBLAS_TENSOR_OP_MATH and similar variables, which keep"
    " Tensor Cores from being used. Automatic mixed precision, XLA flags and settings of GPU memory are"
    " choices: what is set is shown as a detail, together with what the frameworks themselves report.",
    sources=("NVIDIA's TensorFlow user guide, environment variables",),
)
def settings(view: SnapshotView) -> Iterator[Verdict]:
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


_FORCE, _FORBID = "CUDA_FORCE_PTX_JIT", "CUDA_DISABLE_PTX_JIT"
_PTX = "a variable forbids machine code or PTX"
FORCED = variable_cause(
    "ptx-forced",
    _PTX,
    "{variable} is set: the driver compiles every kernel instead of using the existing machine code.",
    "Unset it; it is for testing.",
)
FORBIDDEN = variable_cause(
    "ptx-forbidden",
    _PTX,
    "{variable}={value} forbids the driver to compile PTX, and {framework} has nothing else for this GPU: no"
    " kernel runs.",
    severity="fail",
)


@check(
    "ENV-012",
    title="The driver may choose between machine code and PTX",
    causes=[FORCED, FORBIDDEN],
    about="CUDA_FORCE_PTX_JIT=1 makes the driver ignore a framework's machine code and compile its PTX, for"
    " minutes at every first start; CUDA_DISABLE_PTX_JIT=1 forbids compiling, so that a GPU without machine"
    " code in the build runs nothing. Both are for testing.",
    sources=(CUDA_GUIDE,),
    follows=("PCI-001", "FRM-004"),
)
def ptx(view: SnapshotView) -> Iterator[Verdict]:
    values = variables(view)
    forced, forbidden = (is_on(values.get(name)) for name in (_FORCE, _FORBID))
    if not forced and not forbidden:
        yield Passed(f"neither {_FORCE} nor {_FORBID} is set")
    if forced:
        yield misset(view, FORCED, _FORCE)
    if forbidden:
        needing = _needs_ptx(view)
        if needing:
            yield misset(view, FORBIDDEN, _FORBID, framework=needing)
        else:
            yield Passed(f"{_FORBID}={values[_FORBID]}; nothing here is known to need PTX")


def _needs_ptx(view: SnapshotView) -> str:
    """The first framework that has only PTX for a visible GPU; "" where none is known to."""
    try:
        capabilities = {one.capability for one in visible(view).chosen if major(one.capability)}
    except CannotJudge:
        raise Skip("the compute capabilities of the GPUs are not known") from None
    unknown = []
    for one in framework_facts(view):
        built = known(one.built_capabilities) or []
        if any(code_for(capability, built).kind == "jit" for capability in capabilities):
            return title_of(one)
        if not built and known(one.cuda_build):
            unknown.append(title_of(one))
    if unknown:
        raise NotKnown(f"the capabilities that {unknown[0]} was built for")
    return ""
