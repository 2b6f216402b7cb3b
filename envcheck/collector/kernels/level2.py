"""L2: a plain matrix product in the target's framework, in each of the settings that were asked for.

The process that starts this has set NVIDIA_TF32_OVERRIDE as the settings need it: cuBLAS reads it once.
"""

import os
import time

from .. import framework
from ..facts import from_error
from . import (
    cublas_library,
    framework_jax,
    framework_tensorflow,
    framework_torch,
    mapped_blas,
    operands,
    records,
)
from .adapter import explain
from .driver import Driver
from .level2_mode import Runner

# (mode, setting) in the order in which they run: what the user has comes before anything is switched.
PLAN = (
    ("fp32", "default"),
    ("fp32", "override"),
    ("fp32", "switch-off"),
    ("fp32", "control"),
    ("tf32", "switch-on"),
    ("fp16", "half"),
    ("bf16", "half"),
)
SIDES = {
    "tensorflow": framework_tensorflow,
    "torch": framework_torch,
    "jax": framework_jax,
}
_UNKNOWN = 20  # multiprocessors, where nobody tells how many there are: n is 4096 then
# L2 has three FP32 matrices and three of the mode's; that is half as much again as L1.
_OF_THE_MEMORY = 2, 3

# What changes a product's arithmetic or the choice of its kernel; and all that begin with CUBLAS.
_VARIABLES = tuple(
    (
        "NVIDIA_TF32_OVERRIDE TORCH_ALLOW_TF32_CUBLAS_OVERRIDE TORCH_BLAS_PREFER_CUBLASLT "
        "DISABLE_ADDMM_CUDA_LT TF_DISABLE_CUBLAS_TENSOR_OP_MATH TF_ENABLE_CUBLAS_TENSOR_OP_MATH_FP32 "
        "TF_FP16_MATMUL_USE_FP32_COMPUTE TF_MATMUL_AUTOTUNE_ENABLE TF_USE_CUBLASLT "
        "TF_ENABLE_AUTO_MIXED_PRECISION TF_XLA_FLAGS XLA_FLAGS JAX_DEFAULT_MATMUL_PRECISION "
        "JAX_PLATFORMS"
    ).split()
)


def run(params, teller):
    """Run what ``params`` ask for, and tell of each. A sticky CUDA error ends the process.

    Nothing is reported, and no time counts, before the framework is imported and has its device: that takes
    as long as the disk needs.
    """
    set_here = variables(os.environ)
    if "control" in params["settings"]:
        cublas_library.scrub(os.environ)
    name = params["framework"]
    module, problem = framework.load(name)
    if module is None:
        return _none(params, teller, "error", "import %s: %s" % (name, _line(problem)))
    known = {
        "variables": set_here,
        "framework_version": framework.ask(framework.version_of, module),
    }
    try:
        adapter = SIDES[name].adapter(module)
        lacking = adapter.absent()
        if lacking is None:
            adapter.ping()
    except Exception as error:
        outcome, reason = explain(error, "%s's first use of the GPU" % name)
        teller.run(**known)
        return _none(params, teller, outcome, reason)
    if lacking is not None:
        teller.run(**known)
        return _none(params, teller, "not-supported", lacking)
    known.update(device_facts(params))
    teller.run(**known)
    n = size_for(known.get("multiprocessors"), known.get("memory_free_mib"))
    return measure(adapter, params, teller, n)


def measure(adapter, params, teller, n):
    """Run what is planned on the adapter's device, with n x n matrices or, out of memory, smaller ones."""
    deadline = time.monotonic() + params["seconds"]

    def remaining():
        return deadline + runner.compiling - time.monotonic()

    runner = Runner(adapter, params, teller, n, remaining)
    plan = planned(params)
    for place, (mode, setting) in enumerate(plan):
        if remaining() <= 0:
            reason = "no time left (%g s were given)" % params["seconds"]
            teller.mode(mode=mode, setting=setting, outcome="not-run", reason=reason)
            continue
        runner.run(mode, setting, remaining() / (len(plan) - place))
        if place == 0:
            teller.run(**mapped_blas.facts())
    runner.more()


def planned(params):
    """The (mode, setting) that are asked for and not done yet. Products of FP32 matrices always are."""
    return [
        (mode, setting)
        for mode, setting in PLAN
        if mode in ("fp32",) + tuple(params["modes"])
        and setting in params["settings"]
        and records.key(mode, setting) not in params["skip"]
    ]


def variables(environ):
    """Those that change the arithmetic, as they are set: {name: value}."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if name in _VARIABLES or name.startswith("CUBLAS")
    }


def size_for(multiprocessors, memory_free_mib):
    """n: as large as fills the chip and takes at most a quarter of its free memory.

    Either may be None or unavailable.
    """
    if not isinstance(multiprocessors, int):
        multiprocessors = _UNKNOWN
    if not isinstance(memory_free_mib, int):
        return operands.first_size(multiprocessors, 1 << 62)
    part, whole = _OF_THE_MEMORY
    try:
        return operands.first_size(multiprocessors, (memory_free_mib << 20) * part // whole)
    except operands.TooSmall:
        return operands.SMALLEST


def device_facts(params):
    """Fields of the LevelRun about the device, by the driver; asked once the framework has its context,
    so that it is the one who makes it."""
    try:
        driver = Driver()
        driver.open()
        facts = driver.facts()
    except Exception as error:
        fields = ("name", "compute_capability", "multiprocessors", "memory_free_mib")
        facts = {field: from_error(error) for field in fields}
    facts.update({key: params[key] for key in ("pci_address", "uuid") if params.get(key)})
    return facts


def _none(params, teller, outcome, reason):
    for mode, setting in planned(params):
        teller.mode(mode=mode, setting=setting, outcome=outcome, reason=reason)


def _line(words):
    return " ".join(words.split())[:400]
