"""Why Tensor Cores did not engage: the likely causes; the first that applies is given."""

from __future__ import annotations

from ..data.versions import parse_version
from ..facts.base import known
from ..findings.model import Remedy
from .circumstances import OVERRIDE, Setup, Why, again
from .rates import name, question

_NO_TENSOR_OPS = "TF_DISABLE_CUBLAS_TENSOR_OP_MATH"
_JAX_PRECISION = "JAX_DEFAULT_MATMUL_PRECISION"


def cause(setup: Setup) -> Why | None:
    """The cause of "not engaged"; a run that had to keep off the Tensor Cores needs none."""
    plain = setup.mode.mode == "fp32" and not setup.mode.setting
    if plain or setup.mode.setting in ("switch-off", "control"):
        return None
    return _of_tf32(setup) or _switched_off(setup) or _old_library(setup) or _chosen(setup)


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


def _of_tf32(setup: Setup) -> Why | None:
    """What keeps FP32 products from TF32: the chip, a variable, the framework or its version."""
    asked, run = question(setup.mode), setup.run
    if setup.mode.setting == "override":
        return Why(f"{OVERRIDE}=0, which was set for this run, reaches these products.")
    if setup.chip.has(asked) is False:
        capability = known(run.compute_capability) or "?"
        return Why(
            f"A GPU of compute capability {capability} has no Tensor Cores for {name(asked)}."
        )
    if asked != "tf32":
        return None
    if setup.variable(OVERRIDE).strip() == "0":
        return Why(
            f"{OVERRIDE}=0 is set in the environment, and keeps every NVIDIA library from using TF32.",
            Remedy("Unset it, unless the full FP32 precision is needed.", [f"unset {OVERRIDE}"]),
            chosen=True,
        )
    if older_than_tf32(run.framework, setup.version):
        since = "2.4" if run.framework == "tensorflow" else "1.7"
        return Why(
            f"{setup.framework} {setup.version} is older than TF32, which it uses from {since} on.",
            Remedy(
                "Use mixed precision (FP16), or a newer build; NVIDIA's own TensorFlow 1.15 has TF32."
            ),
        )
    if setup.mode.setting != "default":
        return None
    if off_by_default(run.framework, setup.version):
        return Why(
            f"{setup.framework} leaves TF32 off for matrix products unless it is asked for (since 1.12).",
            Remedy(
                "Where TF32's precision is enough, call torch.set_float32_matmul_precision('high'), or set"
                " this.",
                ["export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1"],
            ),
        )
    value = setup.variable(_JAX_PRECISION)
    if run.framework == "jax" and value.lower() in ("float32", "highest"):
        return Why(
            f"{_JAX_PRECISION}={value} asks for the full FP32 precision.",
            Remedy("Unset it, where TF32's precision is enough.", [f"unset {_JAX_PRECISION}"]),
        )
    return None


def _switched_off(setup: Setup) -> Why | None:
    value = setup.variable(_NO_TENSOR_OPS).strip().lower()
    if setup.run.framework != "tensorflow" or value not in ("1", "true", "yes", "on"):
        return None
    return Why(
        f"{_NO_TENSOR_OPS}={value} switches Tensor Cores off for matrix products.",
        Remedy("Unset it.", [f"unset {_NO_TENSOR_OPS}"]),
        chosen=True,
    )


def _old_library(setup: Setup) -> Why | None:
    version = known(setup.run.library_version) or ""
    parsed = parse_version(version)
    if parsed is None or parsed.major >= 11 or question(setup.mode) not in ("tf32", "bf16"):
        return None
    return Why(
        f"cuBLAS {version} is older than {name(question(setup.mode))}, which came with CUDA 11.",
        Remedy("Install a build of the framework for CUDA 11 or later."),
    )


def _chosen(setup: Setup) -> Why:
    """Nothing else explains it: it lies at this level, or already below."""
    asked = name(question(setup.mode))
    at_l1 = setup.run.level == "L1"
    if setup.run.level == "L0":
        update = Remedy("Update the driver, then run it again.", [again(setup)])
        none = ""
        if setup.above == "proven":
            none = ", though cuBLAS' own kernels use the Tensor Cores: it lies with the driver's compiler"
        elif setup.hardware.says == "not tensor":
            none = ": this driver makes no Tensor Core instruction of it"
        return Why(
            f"The kernel that the driver compiles for {asked} computed as CUDA cores do{none}.",
            update,
        )
    who = setup.cublas if at_l1 else setup.framework
    if setup.below == "proven":
        under = "the hardware's Tensor Cores work" if at_l1 else "cuBLAS uses them"
        return Why(
            f"{who} chose a kernel on CUDA cores for {asked}, though {under}: it lies with this build.",
            Remedy("Install another build of it, for this GPU and the driver's CUDA."),
        )
    if setup.below == "not engaged":
        there = "through the driver alone" if at_l1 else "in cuBLAS"
        return Why(
            f"{asked} products run on CUDA cores {there}, too: the chain breaks there or below, and"
            f" not in {who}."
        )
    return Why(f"{who} chose a kernel on CUDA cores for {asked}.")
