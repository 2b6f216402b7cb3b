"""Why Tensor Cores did not engage: the likely causes; the first that applies is given."""

from __future__ import annotations

from collections.abc import Callable

from ..data.versions import parse_version
from ..facts.base import known
from ..findings.model import Remedy
from .circumstances import OVERRIDE, Setup, Why, again
from .rates import name, question

_NO_TENSOR_OPS = "TF_DISABLE_CUBLAS_TENSOR_OP_MATH"
_JAX_PRECISION = "JAX_DEFAULT_MATMUL_PRECISION"
_ALIGNED = 8  # elements of FP16: 16 bytes, which cuBLAS before 11 demands for Tensor Cores
_SMALL = 512  # rows or columns under which cuBLAS has kernels on CUDA cores


def cause(setup: Setup) -> Why | None:
    """The cause of "not engaged"; a run that had to keep off the Tensor Cores needs none."""
    plain = setup.mode.mode == "fp32" and not setup.mode.setting
    if plain or setup.mode.setting in ("switch-off", "control"):
        return None
    return next((found for look in _CAUSES if (found := look(setup))), None)


def older_than_tf32(framework: str, version: str) -> bool:
    """Whether a build knows nothing of TF32; NVIDIA's own TensorFlow 1.15 ("+nv") does since 20.06."""
    parsed = parse_version(version)
    if parsed is None or framework not in ("tensorflow", "torch") or "+nv" in version:
        return False
    return parsed.release[:2] < ((2, 4) if framework == "tensorflow" else (1, 7))


def off_by_default(framework: str, version: str) -> bool:
    """Whether TF32 is off for matrix products unless one asks: in PyTorch since 1.12."""
    parsed = parse_version(version)
    return framework == "torch" and parsed is not None and parsed.release[:2] >= (1, 12)


def _override_set(setup: Setup) -> Why | None:
    if question(setup.mode) != "tf32" or setup.variable(OVERRIDE).strip() != "0":
        return None
    return Why(
        f"{OVERRIDE}=0 is set in the environment, and keeps every NVIDIA library from using TF32.",
        Remedy("Unset it, unless the full FP32 precision is needed.", [f"unset {OVERRIDE}"]),
        chosen=True,
    )


def _override_given(setup: Setup) -> Why | None:
    if setup.mode.setting != "override":
        return None
    return Why(f"{OVERRIDE}=0, which was set for this run, reaches these products.")


def _tensor_ops_disabled(setup: Setup) -> Why | None:
    value = setup.variable(_NO_TENSOR_OPS).strip().lower()
    if setup.run.framework != "tensorflow" or value not in ("1", "true", "yes", "on"):
        return None
    return Why(
        f"{_NO_TENSOR_OPS}={value} switches Tensor Cores off for matrix products.",
        Remedy("Unset it.", [f"unset {_NO_TENSOR_OPS}"]),
        chosen=True,
    )


def _no_such_mode(setup: Setup) -> Why | None:
    asked = question(setup.mode)
    if setup.chip.has(asked) is not False:
        return None
    capability = known(setup.run.compute_capability) or "?"
    return Why(f"A GPU of compute capability {capability} has no Tensor Cores for {name(asked)}.")


def _old_library(setup: Setup) -> Why | None:
    version = known(setup.run.library_version) or ""
    parsed = parse_version(version)
    if parsed is None or parsed.major >= 11 or question(setup.mode) not in ("tf32", "bf16"):
        return None
    return Why(
        f"cuBLAS {version} is older than {name(question(setup.mode))}, which came with CUDA 11.",
        Remedy("Install a build of the framework for CUDA 11 or later."),
    )


def _old_framework(setup: Setup) -> Why | None:
    old = older_than_tf32(setup.run.framework, setup.version)
    if not old or question(setup.mode) != "tf32":
        return None
    since = "2.4" if setup.run.framework == "tensorflow" else "1.7"
    return Why(
        f"{setup.framework} {setup.version} is older than TF32, which it uses from {since} on.",
        Remedy(
            "Use mixed precision (FP16), or a newer build; NVIDIA's own TensorFlow 1.15 has TF32."
        ),
    )


def _off_by_default(setup: Setup) -> Why | None:
    default = setup.mode.setting == "default"
    if not default or not off_by_default(setup.run.framework, setup.version):
        return None
    return Why(
        f"{setup.framework} leaves TF32 off for matrix products unless it is asked for (since 1.12).",
        Remedy(
            "Where TF32's precision is enough, call torch.set_float32_matmul_precision('high'), or set this.",
            ["export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1"],
        ),
    )


def _jax_precision(setup: Setup) -> Why | None:
    value = setup.variable(_JAX_PRECISION)
    if setup.run.framework != "jax" or setup.mode.setting != "default":
        return None
    if value.lower() not in ("float32", "highest"):
        return None
    return Why(
        f"{_JAX_PRECISION}={value} asks for the full FP32 precision.",
        Remedy("Unset it, where TF32's precision is enough.", [f"unset {_JAX_PRECISION}"]),
    )


def _sizes(setup: Setup) -> Why | None:
    shape = setup.mode.rate.shape if setup.mode.rate is not None else []
    if setup.run.level == "L0" or not shape:
        return None
    sizes = " x ".join(map(str, shape))
    if any(size % _ALIGNED for size in shape):
        return Why(
            f"The sizes {sizes} are not all multiples of {_ALIGNED}: before cuBLAS 11 that rules Tensor"
            " Cores out, and later it makes them slower.",
            Remedy(f"Make dimensions multiples of {_ALIGNED}, or better of 64."),
        )
    if min(shape) < _SMALL:
        return Why(f"At {sizes} cuBLAS may prefer a kernel on CUDA cores: the product is small.")
    return None


def _chosen(setup: Setup) -> Why:
    """Nothing else explains it: it lies at this level, or already below."""
    asked = name(question(setup.mode))
    if setup.run.level == "L0":
        return _by_the_driver(setup, asked)
    who = setup.cublas if setup.run.level == "L1" else setup.framework
    if setup.below == "proven":
        under = (
            "the hardware's Tensor Cores work" if setup.run.level == "L1" else "cuBLAS uses them"
        )
        return Why(
            f"{who} chose a kernel on CUDA cores for {asked}, though {under}: it lies with this build.",
            Remedy("Install another build of it, for this GPU and the driver's CUDA."),
        )
    if setup.below == "not engaged":
        there = "through the driver alone" if setup.run.level == "L1" else "in cuBLAS"
        return Why(
            f"{asked} products run on CUDA cores {there}, too: the chain breaks there or below, and"
            f" not in {who}."
        )
    return Why(f"{who} chose a kernel on CUDA cores for {asked}.")


def _by_the_driver(setup: Setup, asked: str) -> Why:
    if setup.above == "proven":
        return Why(
            f"The kernel that the driver compiles for {asked} computed as CUDA cores do, though cuBLAS' own "
            "kernels use the Tensor Cores: it lies with the driver's compiler.",
            Remedy("Update the driver, then run it again.", [again(setup)]),
        )
    none = (
        ": this driver makes no Tensor Core instruction of it"
        if setup.hardware.says == "not tensor"
        else ""
    )
    return Why(
        f"The kernel that the driver compiles for {asked} computed as CUDA cores do{none}.",
        Remedy("Update the driver, then run it again.", [again(setup)]),
    )


_CAUSES: tuple[Callable[[Setup], Why | None], ...] = (
    _override_given,
    _no_such_mode,
    _override_set,
    _tensor_ops_disabled,
    _old_library,
    _old_framework,
    _off_by_default,
    _jax_precision,
    _sizes,
    _chosen,
)
