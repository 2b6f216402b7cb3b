"""The check on what mixed precision gains on a GPU: the same work in 16 bits and in 32."""

from __future__ import annotations

import contextlib

from ...data.slow_versions import slow_versions
from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...tensorcores.kernel_names import classify
from ...tensorcores.peaks import Chip, chip
from ..reading import CannotJudge, SnapshotView, known
from ..target import pip_install
from ..verdicts import Cause, Params, Passed, Verdicts, check, warn
from .amp import look
from .common import NO_FRAMEWORK, Seen, each_run, failed, number, ok, text, words

_LEAST = 1.1  # times as fast: below that nothing is gained
_WORK = ("product", "convolution")


def _cause(key: str, why: str, remedy: str = "") -> Cause:
    sentence = f"Mixed precision gains nothing in {{title}} ({{steps}}): {why}."
    return warn(key, f"mixed precision gains nothing: {why}", sentence, remedy)


NO_TENSOR_CORES = _cause(
    "no-tensor-cores",
    "{gpu} has no Tensor Cores{why}",
    "Train in FP32 here, unless the memory that 16 bits save is what you need.",
)
SLOW_VERSION = _cause("slow-version", "{what}", "Use {framework} {without} or later.")
NOT_SEEN = _cause(
    "cause-not-seen",
    "{kernels}",
    "Check whether the Tensor Cores reach their rate at all, and whether the GPU is throttled.",
)


@check(
    "ACC-005",
    title="AMP, Tensor Cores",
    causes=[NO_TENSOR_CORES, SLOW_VERSION, NOT_SEEN],
    about="A product and a convolution are timed in 16 bits and in FP32, in turns. A warning where 16 bits"
    f" are less than {_LEAST:g} times as fast, with the cause.",
    sources=(
        "docs.nvidia.com/deeplearning/performance/mixed-precision-training",
        "NVIDIA/apex#153; tensorflow#44191, #39985, #48127",
        "envcheck/data: tensor_core_exceptions.csv, core_rates.csv, kernel_names.csv, slow_versions.csv",
    ),
    follows=(*NO_FRAMEWORK, "ACC-003", "ACC-004"),
    systems=("amp-tensor-cores",),
)
def amp_gains(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        gains = {name: gain for name in _WORK if (gain := _gain(seen.trial(name))) is not None}
        untimed = [
            f"{name}: {failed(seen, seen.trial(name))}" for name in _WORK if name not in gains
        ]
        slow = [name for name, gain in gains.items() if gain < _least(seen, view, name)]
        times = {name: f"{name} {gain:.2g} times as fast" for name, gain in gains.items()}
        if not gains:
            yield seen.unjudged("; ".join(untimed))
        elif slow:
            steps = " and ".join(times[name] for name in slow)
            cause, params = _why(view, seen, slow[0])
            yield seen.found(cause, *map(seen.trial, slow), steps=steps, **params)
        else:
            yield Passed(f"{seen.title}: {', '.join([*times.values(), *untimed])} as in 32 bits")

    absent = "the target has neither TensorFlow nor PyTorch"
    yield from each_run(view, "amp-tensor-cores", judge, absent=absent)


def _gain(trial: SystemTrial | None) -> float | None:
    """How many times as fast 16 bits are; None where that was not timed."""
    fast, plain = number(trial, "amp_ms"), number(trial, "float32_ms")
    return plain / fast if ok(trial) and fast > 0 and plain > 0 else None


def _least(seen: Seen, view: SnapshotView, name: str) -> float:
    """What it must gain at least: less where FP32 may have been TF32, which has no switch there."""
    surely = text(seen.trial(name), "float32_is") == "FP32"
    has_tf32 = _chip(view, seen, seen.trial(name))[1].has("tf32")
    return _LEAST if surely or has_tf32 is False else 1.0


def _chip(view: SnapshotView, seen: Seen, trial: SystemTrial | None) -> tuple[str, Chip]:
    """The GPU's name and what is known of it: as the framework says, else as the driver."""
    name, capability = text(trial, "gpu"), text(trial, "compute_capability")
    if not capability:
        with contextlib.suppress(CannotJudge):
            for gpu in view.gpus:
                if known(gpu.pci_address) in seen.run.gpus[:1]:
                    name = known(gpu.name) or name
                    capability = known(gpu.compute_capability) or ""
    return name or "the GPU", chip(name, capability)


def _why(view: SnapshotView, seen: Seen, work: str) -> tuple[Cause, Params]:
    trial = seen.trial(work)
    name, unit = _chip(view, seen, trial)
    if unit.modes == frozenset():
        return NO_TENSOR_CORES, {"gpu": name, "why": f" ({unit.why_none})" if unit.why_none else ""}
    version = parse_version(seen.version)
    rows = slow_versions(seen.run.framework, version) if version is not None else []
    row = next((one for one in rows if one.what.startswith("Conv2D")), None)
    if row is not None and work == "convolution":
        commands = [pip_install(view, f"{seen.run.framework}>={row.without}")]
        params = {"what": row.what, "framework": seen.title.split()[0], "without": row.without}
        return SLOW_VERSION, {**params, "commands": commands}
    kinds = {one: classify(one) for one in words(trial, "kernels")}
    plain = next((one for one, kind in kinds.items() if kind == "simt"), None)
    kernels = "the cause is not seen"
    if "tensor" in kinds.values():
        kernels = "its kernels run on Tensor Cores, and the cause is not seen"
    elif plain:
        kernels = f"it runs on CUDA cores ({plain[:60]})"
    commands = [look(view, "libraries", "tensorcores"), "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER"]
    return NOT_SEEN, {"kernels": kernels, "commands": commands}
