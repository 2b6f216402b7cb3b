"""The check on what mixed precision gains on a GPU: the same step in 16 bits and in 32."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ...data.slow_versions import slow_versions
from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.missing import CannotJudge, CouldNotRun
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ...tensorcores.kernel_names import classify
from ...tensorcores.peaks import Chip, chip
from ..registry import check
from ..target import pip_install
from .amp import look
from .common import NO_FRAMEWORK, Seen, each_run, failed, number, runs

_LEAST = 1.1  # times as fast: below that nothing is gained
_HOST = 0.8  # of a step's time: above that the host is what is waited for
_STEPS = ("product", "convolution")
_ODD = ("product n+1", "product n-1")


def _cause(key: str, why: str, remedy: str = "") -> Cause:
    sentence = "Mixed precision gains nothing in {title} ({steps}): " + why + "."
    return Cause(key, "warn", "mixed precision gains nothing: " + why, sentence, remedy)


NO_TENSOR_CORES = _cause(
    "no-tensor-cores",
    "{gpu} has no Tensor Cores{why}",
    "Train in FP32 here, unless the memory that 16 bits save is what you need.",
)
HOST_WAITS = _cause(
    "host-too-slow",
    "the host needs {ms:.2g} ms to start a step, and the GPU waits for it",
    "Give a step more work (a larger batch), and check what keeps the CPU busy: its clock, other processes,"
    " a limit on its time.",
)
ODD_SIZE = _cause(
    "no-multiple-of-8",
    "{size:g} is no multiple of 8, as Tensor Cores need their sizes",
    "Pad channels, hidden sizes, vocabularies and batches to multiples of 8.",
)
SLOW_VERSION = _cause("slow-version", "{what}", "Use {framework} {without} or later.")
CUDA_CORES = _cause(
    "runs-on-cuda-cores",
    "it runs on CUDA cores ({kernel})",
    "Look at cuBLAS and cuDNN as they are loaded, and at what the micro-kernels show.",
)
NOT_SEEN = _cause(
    "cause-not-seen",
    "{kernels}the cause is not seen",
    "Check whether the Tensor Cores reach their rate at all, and whether the GPU is throttled.",
)


@check(
    "ACC-005",
    title="AMP, Tensor Cores",
    causes=[NO_TENSOR_CORES, HOST_WAITS, ODD_SIZE, SLOW_VERSION, CUDA_CORES, NOT_SEEN],
    about=(
        "The same training steps, a product alone and convolutions with a product behind them, are timed in "
        "16 bits, in FP32 and from Ampere on in TF32, in turns. A warning where 16 bits are less than "
        f"{_LEAST:g} times as fast as FP32, with the cause: a GPU without Tensor Cores, a step that the host "
        "holds up, kernels that run on CUDA cores, a version that is known to choose slow ones. "
        "Sizes that are one more or one less than a multiple of 8 are timed and shown, too: what they "
        "cost depends on the GPU and its cuBLAS. Where the graph rewrite timed its steps, these are shown, "
        "too."
    ),
    sources=(
        "docs.nvidia.com/deeplearning/performance/mixed-precision-training",
        "NVIDIA/apex#153; tensorflow#44191, #39985, #48127",
        "envcheck/data: tensor_core_exceptions.csv, core_rates.csv, kernel_names.csv, slow_versions.csv",
    ),
    follows=(*NO_FRAMEWORK, "ACC-003", "ACC-004"),
    systems=("amp-tensor-cores",),
)
def amp_gains(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        main = seen.trial("product")
        gain = _gain(main)
        if main is None or gain is None:
            raise CouldNotRun(f"{seen.title}: {_why_untimed(seen, main)}")
        timed = [(name, seen.trial(name)) for name in _STEPS]
        slow = [
            (name, trial)
            for name, trial in timed
            if trial is not None and (_gain(trial) or _LEAST) < _least(seen, view, trial)
        ]
        if not slow:
            yield Passed(f"{seen.title}: {_detail(seen)}")
            return
        cause, details = _why(view, seen, *slow[0])
        steps = " and ".join(f"{name} {_times(_gain(trial) or 0)}" for name, trial in slow)
        yield seen.found(cause, *(trial for _name, trial in slow), steps=steps, **details)

    absent = "the target has neither TensorFlow nor PyTorch"
    yield from each_run(view, "amp-tensor-cores", judge, absent=absent)
    with contextlib.suppress(CannotJudge):
        for seen in runs(view, "amp-graph"):
            yield from _rewritten(view, seen)


def _rewritten(view: SnapshotView, seen: Seen) -> Iterator[Verdict]:
    """The steps of the graph rewrite, where it engaged on a GPU and they were timed.

    They are small, and timed by the host: a gain says something, none says little where there are Tensor
    Cores.
    """
    for on in seen.run.trials:
        control = seen.trial(f"{on.name} off")
        halves = number(on, "half_convolutions") + number(on, "half_products")
        fast, plain = number(on, "step_ms"), number(control, "step_ms")
        if seen.run.device == "cpu" or fast <= 0 or plain <= 0 or not halves:
            continue
        name, unit = _chip(view, seen, on)
        gain = plain / fast
        if gain < _LEAST and unit.modes == frozenset():
            steps = f"the graph rewrite ({on.name}) {_times(gain)}"
            yield seen.found(NO_TENSOR_CORES, steps=steps, **_none(name, unit))
        elif gain < _LEAST:
            what = "a step as small as this one gains nothing"
            yield Passed(f"{seen.title}: the graph rewrite ({on.name}) {_times(gain)}: {what}")
        else:
            yield Passed(f"{seen.title}: the graph rewrite ({on.name}) {_times(gain)}")


def _none(name: str, unit: Chip) -> dict[str, Any]:
    return {"gpu": name, "why": f" ({unit.why_none})" if unit.why_none else ""}


def _why_untimed(seen: Seen, trial: SystemTrial | None) -> str:
    if trial is not None and trial.outcome == "ok":
        return "the step has no times"
    return failed(seen, trial)


def _gain(trial: SystemTrial | None) -> float | None:
    """How many times as fast 16 bits are; None where that was not timed."""
    fast, plain = number(trial, "amp_ms"), number(trial, "float32_ms")
    if trial is None or trial.outcome != "ok" or fast <= 0 or plain <= 0:
        return None
    return plain / fast


def _least(seen: Seen, view: SnapshotView, trial: SystemTrial) -> float:
    """What it must gain at least: less where FP32 may have been TF32, which has no switch there."""
    surely = trial.evidence.get("float32_is") == "FP32"
    has_tf32 = _chip(view, seen, trial)[1].has("tf32")
    return _LEAST if surely or has_tf32 is False else 1.0


def _chip(view: SnapshotView, seen: Seen, trial: SystemTrial) -> tuple[str, Chip]:
    """The GPU's name and what is known of it: as the framework says, else as the driver."""
    name, capability = (
        value if isinstance(value := trial.evidence.get(key), str) else ""
        for key in ("gpu", "compute_capability")
    )
    if not capability:
        with contextlib.suppress(CannotJudge):
            for gpu in view.gpus:
                if known(gpu.pci_address) in seen.run.gpus[:1]:
                    name = known(gpu.name) or name
                    capability = known(gpu.compute_capability) or ""
    return name or "the GPU", chip(name, capability)


def _why(
    view: SnapshotView, seen: Seen, step: str, trial: SystemTrial
) -> tuple[Cause, dict[str, Any]]:
    """The cause, and what it is found with."""
    name, unit = _chip(view, seen, trial)
    if unit.modes == frozenset():
        return NO_TENSOR_CORES, _none(name, unit)
    if number(trial, "host_ms") > _HOST * number(trial, "amp_ms") > 0:
        commands = ["nproc; uptime; cat /sys/fs/cgroup/cpu.max"]
        return HOST_WAITS, {"ms": number(trial, "host_ms"), "commands": commands}
    if number(trial, "n") % 8 and step != "convolution":
        return ODD_SIZE, {"size": number(trial, "n")}
    rows = _known_slow(seen) if step == "convolution" else []
    if rows:
        what, without = rows[0]
        commands = [pip_install(view, f"{seen.run.framework}>={without}")]
        title = seen.title.split()[0]
        details = {"what": what, "framework": title, "without": without}
        return SLOW_VERSION, {**details, "commands": commands}
    named = trial.evidence.get("kernels")
    kinds = {one: classify(one) for one in named} if isinstance(named, list) else {}
    plain = next((one for one, kind in kinds.items() if kind == "simt"), None)
    on_tensor_cores = "tensor" in kinds.values()
    if plain and not on_tensor_cores:
        commands = [look(view, "libraries", "tensorcores")]
        return CUDA_CORES, {"kernel": plain[:60], "commands": commands}
    return NOT_SEEN, {
        "kernels": "its kernels run on Tensor Cores, and " if on_tensor_cores else "",
        "commands": [look(view, "tensorcores"), "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER"],
    }


def _known_slow(seen: Seen) -> list[tuple[str, str]]:
    """(what is slow, the version that is without it) of convolutions of 16 bits in this version."""
    version = parse_version(known(seen.run.framework_version) or "")
    if version is None:
        return []
    rows = slow_versions(seen.run.framework, version)
    return [(row.what, row.without) for row in rows if row.what.startswith("Conv2D")]


def _detail(seen: Seen) -> str:
    """ "product 5.1 times as fast as FP32 (1.8 as TF32), convolution 3.2; at 4097 4.0, at 4095 4.1" """
    parts = []
    for name in _STEPS:
        trial = seen.trial(name)
        gain = _gain(trial)
        if trial is None or gain is None:
            parts.append(f"{name}: {failed(seen, trial)}")
            continue
        tf32 = number(trial, "tf32_ms") / number(trial, "amp_ms")
        beside = f" ({tf32:.1f} as TF32)" if tf32 > 0 else ""
        than = "FP32" if trial.evidence.get("float32_is") == "FP32" else "32 bits"
        parts.append(f"{name} {gain:.1f} times as fast as {than}{beside}")
    shown = ", ".join(parts)
    odd = [(number(seen.trial(name), "n"), _gain(seen.trial(name))) for name in _ODD]
    sizes = [f"at {n:g} {gain:.1f} times" for n, gain in odd if n and gain is not None]
    if sizes:
        shown += f"; {', '.join(sizes)}"
    if any(gain is not None and gain < _LEAST for _n, gain in odd):
        shown += ": sizes that are no multiple of 8 gain nothing here"
    return shown


def _times(gain: float) -> str:
    return f"{gain:.2g} times as fast"
