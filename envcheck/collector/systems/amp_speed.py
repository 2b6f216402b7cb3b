"""What 16 bits gain on Tensor Cores: a product and a convolution in 16 bits and in 32, timed in turns."""

import importlib

from ..kernels import cupti
from ..kernels.failures import NotSupported
from .running import records

SYSTEM = "amp-tensor-cores"
FRAMEWORKS = ("tensorflow", "torch")
DEADLINE = 30.0
GPUS = 1
ALONE = True

_LARGE_MIB = 1000  # what the larger sizes take
_ROUNDS = 3
_ROUND = 0.03  # seconds of one variant
_MOST = 100  # of one variant in a round
_KERNELS = 16


def run(framework, params, tell):
    kernels = importlib.import_module("envcheck.collector.kernels.framework_" + params["framework"])
    adapter = kernels.adapter(framework)
    absent = adapter.absent()
    if absent:
        raise records.CouldNotRun(absent)
    if params["framework"] == "torch" and hasattr(framework.backends.cudnn, "allow_tf32"):
        framework.backends.cudnn.allow_tf32 = False
    large = (params["memory_mib"] or 0) >= _LARGE_MIB
    n, images = (4096, 32) if large else (2048, 8)
    measure(adapter, (n, n, n), (images, 56, 128, 128, 3), tell)


def measure(adapter, product, convolution, tell):
    """product, convolution: their sizes, as an Adapter takes them."""
    for name, make, sizes in (
        ("product", adapter.product, product),
        ("convolution", adapter.convolution, convolution),
    ):
        with tell.trial(name) as trial:
            adapter.release()
            facts = adapter.facts()
            trial["gpu"] = facts.get("name")
            trial["compute_capability"] = facts.get("compute_capability")
            setting = _without_tf32(adapter)
            trial["float32_is"] = "FP32" if setting == "control" else "its default"
            half = make("half", "fp16", sizes)
            works = {"amp": half, "float32": make(setting, "fp32", sizes)}
            for variant, seconds in _in_turns(works).items():
                trial[variant + "_ms"] = round(1000.0 * seconds, 4)
            trial["kernels"] = _kernels(adapter, half)


def _without_tf32(adapter):
    try:
        adapter.switch("control")
    except NotSupported:
        return "default"
    return "control"


def _in_turns(works):
    """{name: seconds of one}: in turns, so that a clock that rises or falls meets all variants."""
    counts, times = {}, {name: [] for name in works}
    for name, work in works.items():
        work.once()  # libraries are loaded, algorithms chosen
        counts[name] = int(min(_MOST, max(1, _ROUND / max(work.seconds(2) / 2, 1e-6))))
        work.seconds(counts[name])  # a session plans for each count of its own
    for _ in range(_ROUNDS):
        for name, work in works.items():
            times[name].append(work.seconds(counts[name]) / counts[name])
    return {name: sorted(found)[_ROUNDS // 2] for name, found in times.items()}


def _kernels(adapter, work):
    built = str(adapter.built_cuda() or "").partition(".")[0]
    with cupti.kernel_names(None, int(built) if built.isdecimal() else None) as seen:
        work.once()
    return seen.found[:_KERNELS] if isinstance(seen.found, list) else None
