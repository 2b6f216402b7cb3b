"""The check on a framework's first steps on the GPU: an operation that XLA compiles, and convolutions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.versions import parse_version
from ...facts.base import known
from ...facts.missing import Skip
from ...facts.target import FRAMEWORKS, Framework, Trial
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.subjects import about
from ..driver_state import NO_GPUS_THERE
from ..libraries.bring import newer_cudnn
from ..registry import check
from ..target import each_framework, mapped, need_gpus, python
from .causes import SIGNALS, Cause, explain

TAKEN = re.compile(
    r"OutOfMemory|out of memory|RESOURCE_EXHAUSTED|ResourceExhausted|CUDNN_STATUS_ALLOC_FAILED"
    r"|CUBLAS_STATUS_ALLOC_FAILED"
    # As in the mode for one process, which the framework itself is by then.
    r"|busy or unavailable|CUDA_ERROR_DEVICE_UNAVAILABLE"
)
_CUDNN = re.compile(
    r"Loaded runtime CuDNN library: (\d[\d.]*\d) but source was compiled with: (\d[\d.]*\d)"
)
_CAUSES = (
    Cause(
        r"SUBLIBRARY_VERSION_MISMATCH|CUDNN_STATUS_VERSION_MISMATCH",
        "cuDNN's parts are of different versions",
        "Leave one cuDNN: LD_LIBRARY_PATH, the system's and the wheel's are the places to look.",
        ("{pip} list | grep -i cudnn", "ldconfig -p | grep libcudnn", "echo $LD_LIBRARY_PATH"),
        "NVIDIA's cuDNN documentation, sub-libraries",
    ),
    Cause(
        r"Unsupported \.version (\S+); current version is '?([\d.]+)",
        "ptxas knows PTX up to {2}, and {1} was written",
        "Put a newer ptxas first on PATH.",
        ("which -a ptxas",),
        "jax#25344",
    ),
    Cause(
        r"libdevice not found|libdevice\.10\.bc|ptxas not found|suitable version of ptxas|No PTX compilation",
        "XLA does not find ptxas or libdevice",
        "Install nvidia-cuda-nvcc, or name a toolkit to XLA.",
        ("export XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda",),
        "tensorflow#58681",
    ),
    Cause(
        r"Value '(sm_\d+\w?)' is not defined for option 'gpu-name'",
        "its ptxas does not know {1}",
        "Put a newer ptxas first on PATH.",
        ("which -a ptxas",),
        "tensorflow/serving#1821",
    ),
    Cause(
        r"INVALID_PTX|UNSUPPORTED_PTX_VERSION|no kernel image is available|CUDA_ERROR_NO_BINARY_FOR_GPU"
        r"|INVALID_HANDLE|cannot be compiled to future architecture",
        "it has no code that runs on this GPU",
        "Use a build that has code for this GPU.",
        (),
        "tensorflow#97387, #99592",
    ),
    Cause(
        r"STATUS_ARCH_MISMATCH",
        "a library of CUDA's has no code for this GPU",
        "Install newer libraries, or a build for a newer CUDA.",
        ("{pip} list | grep -i nvidia",),
        "cuDNN's documentation, cudnnStatus_t",
    ),
    Cause(
        r"CUDNN_STATUS_NOT_INITIALIZED|CUDNN_STATUS_INTERNAL_ERROR|Failed to get convolution algorithm"
        r"|DNN library (?:initialization failed|is not found)|could not create cudnn handle",
        "cuDNN does not start: another process holds the GPU's memory, or this cuDNN does not fit",
        "Where another process is listed, it is the memory: let it end, or use less. Where none is, it is "
        "cuDNN: see which one is loaded.",
        (
            "nvidia-smi --query-compute-apps=pid,used_memory --format=csv",
            "{pip} list | grep -i cudnn",
            "ldconfig -p | grep libcudnn",
        ),
        "tensorflow#24828, #32548",
    ),
    Cause(
        r"No algorithm worked|[Uu]nable to find a valid cuDNN algorithm|unable to find an engine"
        r"|Failed to determine best cudnn convolution algorithm",
        "cuDNN has no algorithm for it: none for which memory is free, or that has code for this GPU",
        "Where another process is listed, let it end, or use less memory. Where none is, it is cuDNN: see "
        "which one is loaded.",
        (
            "nvidia-smi --query-compute-apps=pid,used_memory --format=csv",
            "{pip} list | grep -i cudnn",
        ),
        "tensorflow#42474, #43174",
    ),
)
_TOLD = {
    "xla": "what XLA compiles",
    "conv2d float32": "2D convolutions",
    "conv3d float32": "3D convolutions",
    "conv2d float16": "2D convolutions of 16-bit numbers",
    "conv3d float16": "3D convolutions of 16-bit numbers",
}


def ran(facts: Framework, *names: str) -> bool:
    """Whether each of these trials (all, where none is named) was made and went well."""
    trials = known(facts.trials) or []
    well = {one.name for one in trials if one.outcome == "ok"}
    return bool(trials) and (set(names) or {one.name for one in trials}) <= well


def said(facts: Framework) -> list[str]:
    """What a framework logged, and what its trials said."""
    errors = [line for one in known(facts.trials) or [] for line in one.error.splitlines()]
    return [*facts.log, *facts.trial_log, *errors]


@check(
    "FRM-010",
    title="The framework's first steps on the GPU work",
    problem="the framework fails on the GPU",
    about=(
        "A framework that lists its GPUs may still fail at the first convolution or at the first operation "
        "that XLA compiles: with a cuDNN below the one it was built with, without libdevice, with a ptxas "
        "that is too old, on a GPU that it has no code for. One compiled operation and one convolution "
        "forward and backward, in 2D and 3D, of 32-bit and of 16-bit numbers are therefore run, in a "
        "process of their own. A failure where one fails or crashes; one that takes too long, or finds the "
        "GPU or its memory taken, is no verdict."
    ),
    sources=("tensorflow#24828, #58681, #97387; jax#25344", "NVIDIA's cuDNN documentation"),
    follows=(
        *NO_GPUS_THERE,
        "FRM-001",
        "FRM-002",
        "FRM-003",
        "FRM-004",
        "FRM-007",
        "FRM-008",
        "FRM-009",
        "LIB-002",
        "LIB-005",
        "GPU-016",
        "ACC-007",
    ),
)
def first_steps(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)

    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        trials = need(facts.trials, f"what {title} does on the GPU")
        if not trials:
            raise Skip(f"nothing was tried in {title}")
        failed = [one for one in trials if one.outcome in ("failed", "crashed")]
        for one in trials:
            if one.outcome == "timeout":
                yield Unjudged(
                    "could-not-run",
                    f"{title}, {_name(one)}: {one.error or 'no answer in time'}",
                    about("framework", title),
                )
        taken = [one for one in failed if TAKEN.search(one.error)]
        if taken:
            yield Unjudged(
                "could-not-run",
                f"{title}, {_name(taken[0])}: the GPU or its memory is taken",
                about("framework", title),
            )
        rest = [one for one in failed if one not in taken]
        if rest:
            yield _failed(view, facts, rest)
        well = [one.name for one in trials if one.outcome == "ok"]
        if well and not rest:
            yield Passed(f"{title}: {', '.join(well)}")
        elif not well and all(one.outcome == "not-supported" for one in trials):
            raise Skip(f"nothing could be tried in this {title}")

    yield from each_framework(view, judge)


def _name(trial: Trial) -> str:
    return _TOLD.get(trial.name, trial.name)


def _failed(view: SnapshotView, facts: Framework, failed: list[Trial]) -> Finding:
    title = FRAMEWORKS[facts.name]
    words = [*said(facts), *(line for one in failed for line in one.error.splitlines())]
    why, remedy = why_failed(view, facts, failed[0].error, words)
    return Finding(
        "fail",
        f"{title} {known(facts.version) or ''} lists its GPUs and fails there at "
        f"{', '.join(_name(one) for one in failed)}: {why}.",
        subjects=about("framework", title),
        evidence=[
            view.evidence(
                f"target.{facts.name}.trials", f"{failed[0].name}: {failed[0].error[:300]}"
            )
        ],
        remedy=remedy,
        headline=f"{title} fails on the GPU: {why}",
    )


def why_failed(
    view: SnapshotView, facts: Framework, error: str, words: list[str]
) -> tuple[str, Remedy]:
    """Why a step on the GPU failed, to stand behind a colon, and what to do.

    error: the step's own. words: all lines that the framework wrote, the error's among them.
    """
    cudnn = next((told for line in words if (told := _CUDNN.search(line))), None)
    running = mapped(facts).get("libcudnn", [])
    built = parse_version(cudnn[2]) if cudnn else None
    if cudnn is not None and built is not None and running:
        why = f"cuDNN {cudnn[1]} was loaded, and it was built with {cudnn[2]}"
        return why, newer_cudnn(view, facts, running[0], built)
    found = explain(_CAUSES, words, f"{python(view)} -m pip", known(facts.built_cuda) or "")
    if found is not None:
        return found.says, found.remedy
    signal = re.search(r"signal (\d+)", error)
    if signal:
        why = SIGNALS.get(int(signal[1]), f"its process dies by signal {signal[1]}")
    else:
        why = (error.strip().splitlines() or ["it gives no reason"])[-1][:200].rstrip(".")
    return why, Remedy(
        "Ask it again with all that it has to say.",
        [f"TF_CPP_MIN_LOG_LEVEL=0 CUDA_LAUNCH_BLOCKING=1 {python(view)} -c 'import {facts.name}'"],
    )
