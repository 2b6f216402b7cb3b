"""The check on a framework's first steps on the GPU: an operation that XLA compiles, and convolutions."""

from __future__ import annotations

import re

from ...data.versions import parse_version
from ...facts.target import Trial
from ..declared import declared_causes
from ..libraries.bring import newer_cudnn
from ..reading import Framework, Skip, SnapshotView, known, need
from ..target import about_framework, mapped, per_framework, title_of
from ..verdicts import Cause, Finding, Passed, Remedy, Unjudged, Verdicts, check, fail
from .causes import SIGNALS, Explained, explain, signs, try_again

CAUSE = declared_causes(__name__)

TAKEN = re.compile(
    r"OutOfMemory|out of memory|RESOURCE_EXHAUSTED|ResourceExhausted|CUDNN_STATUS_ALLOC_FAILED"
    r"|CUBLAS_STATUS_ALLOC_FAILED"
    # As in the mode for one process, which is then the framework itself.
    r"|busy or unavailable|CUDA_ERROR_DEVICE_UNAVAILABLE"
)
_CUDNN = re.compile(
    r"Loaded runtime CuDNN library: (\d[\d.]*\d) but source was compiled with: (\d[\d.]*\d)"
)


def _step_fails(key: str, says: str, remedy: str = "", source: str = "") -> Cause:
    """A cause of FRM-010."""
    sentence = "{framework} {version} lists its GPUs and fails there at {steps}: " + f"{says}."
    headline = "{framework} fails on the GPU: " + says
    return fail(key, headline, sentence, remedy, source=source)


FIRST_STEPS = signs("FRM-010", _step_fails)
_CUDNN_SAYS = "cuDNN {loaded} was loaded, and it was built with {built}"
OTHER_REASON = CAUSE["other-reason"]
_STEPS = {
    "xla": "what XLA compiles",
    "conv2d float32": "2D convolutions",
    "conv3d float32": "3D convolutions",
    "conv2d float16": "2D convolutions of 16-bit numbers",
    "conv3d float16": "3D convolutions of 16-bit numbers",
}


def ran(facts: Framework, *names: str) -> bool:
    """Whether each of these trials (all, if none is named) was made and succeeded."""
    trials = known(facts.trials) or []
    well = {one.name for one in trials if one.outcome == "ok"}
    return bool(trials) and (set(names) or {one.name for one in trials}) <= well


def lines_of(facts: Framework) -> list[str]:
    """What a framework logged, and the errors of its trials."""
    errors = [line for one in known(facts.trials) or [] for line in one.error.splitlines()]
    return [*facts.log, *facts.trial_log, *errors]


@check("FRM-010", causes=[sign.cause for sign in FIRST_STEPS])
@per_framework()
def first_steps(view: SnapshotView, facts: Framework) -> Verdicts:
    title = title_of(facts)
    trials = need(facts.trials, f"what {title} does on the GPU")
    failed = [one for one in trials if one.outcome in ("failed", "crashed")]
    taken = [one for one in failed if TAKEN.search(one.error)]
    doubts = [(one, one.error or "no answer in time") for one in trials if one.outcome == "timeout"]
    doubts += [(one, "the GPU or its memory is taken") for one in taken[:1]]
    for one, why in doubts:
        reason = f"{title}, {_step(one)}: {why}"
        yield Unjudged("could-not-run", reason, about_framework(facts))
    rest = [one for one in failed if one not in taken]
    well = [one.name for one in trials if one.outcome == "ok"]
    if rest:
        yield _failed(view, facts, rest)
    elif well:
        yield Passed(f"{title}: {', '.join(well)}")
    elif all(one.outcome == "not-supported" for one in trials):
        raise Skip(f"nothing could be tried in this {title}")


def _step(trial: Trial) -> str:
    return _STEPS.get(trial.name, trial.name)


def _failed(view: SnapshotView, facts: Framework, failed: list[Trial]) -> Finding:
    shown = f"{failed[0].name}: {failed[0].error[:300]}"
    return _explained(view, facts, failed[0].error, lines_of(facts)).found(
        facts,
        [view.evidence(f"target.{facts.name}.trials", shown)],
        version=known(facts.version) or "",
        steps=", ".join(map(_step, failed)),
    )


def _explained(view: SnapshotView, facts: Framework, error: str, words: list[str]) -> Explained:
    cudnn = next((match for line in words if (match := _CUDNN.search(line))), None)
    running = mapped(facts).get("libcudnn", [])
    built = parse_version(cudnn[2]) if cudnn else None
    if cudnn is not None and built is not None and running:
        params = {"loaded": cudnn[1], "built": cudnn[2]}
        advice = newer_cudnn(view, facts, running[0], built)
        return Explained(
            CAUSE["cudnn-too-old"], _CUDNN_SAYS.format(**params), cudnn[0], params, advice
        )
    found = explain(view, facts, FIRST_STEPS, words)
    if found is not None:
        return found
    signal = re.search(r"signal (\d+)", error)
    if signal:
        why = SIGNALS.get(int(signal[1]), f"its process dies by signal {signal[1]}")
    else:
        why = (error.strip().splitlines() or ["it gives no reason"])[-1][:200].rstrip(".")
    again = f"TF_CPP_MIN_LOG_LEVEL=0 CUDA_LAUNCH_BLOCKING=1 {try_again(view, facts)}"
    advice = Remedy(OTHER_REASON.remedy, [again])
    return Explained(OTHER_REASON, why, error, {"reason": why}, advice)
