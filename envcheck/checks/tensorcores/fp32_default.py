"""The check on what plain FP32 products do in each framework, as the user has it."""

from __future__ import annotations

from ...data.versions import parse_version
from ...facts.micro_kernels import LevelRun
from ...tensorcores.circumstances import OVERRIDE
from ...tensorcores.judge import Case
from ...tensorcores.not_engaged import off_by_default, older_than_tf32
from ...tensorcores.signatures import EMULATED
from ..gpus import together
from ..reading import FRAMEWORKS, Skip, SnapshotView, known
from ..verdicts import Finding, Passed, Remedy, Unjudged, Verdicts, check, warn
from .common import (
    NOTHING_RUNS,
    SOURCES,
    all_cases,
    inline,
    level_cases,
    lines_of,
    not_run,
    run_again,
)

_ENGAGED = ("proven", "indicated")


_HEADLINE = "does not run plain FP32 as expected"
ON_CUDA_CORES = warn(
    "fp32-not-in-tf32",
    _HEADLINE,
    "{framework} runs FP32 products on CUDA cores, though it is known to use TF32 for them: {why}",
)
UNKNOWN = warn(
    "fp32-mode-unknown",
    _HEADLINE,
    "Whether {framework} runs plain FP32 products in TF32 on Tensor Cores is not known: {why}.",
)


@check(
    "TC-310",
    title="Plain FP32 products do what the framework is known for",
    causes=(ON_CUDA_CORES, UNKNOWN),
    about="TensorFlow runs products of FP32 matrices in TF32 from 2.4 on, PyTorch keeps them in FP32"
    " since 1.12 by default, JAX prefers TF32, and newer cuBLAS can emulate FP32 on Tensor Cores."
    f" Each is shown, with how to change it, and whether {OVERRIDE}=0 affects it.",
    sources=(
        *SOURCES,
        "TensorFlow 2.4 release notes; PyTorch 1.12 release notes; cuBLAS documentation",
    ),
    follows=(*NOTHING_RUNS, "TC-402", "FRM-001", "FRM-007", "FRM-005", "FRM-002", "ENV-004"),
)
def plain_products(view: SnapshotView) -> Verdicts:
    cases = [case for case in level_cases(view, "L2") if case.judged.setting == "default"]
    if not cases:
        raise Skip("the default setting was not run")
    yield from together(_default(view, case) for case in cases)


def _default(view: SnapshotView, case: Case) -> Finding | Unjudged | Passed:
    judged, run = case.judged, case.seen.run
    title = FRAMEWORKS.get(judged.framework, "")
    if judged.verdict == "could not run":
        return not_run(case)
    if judged.verdict in _ENGAGED and case.seen.reading.unit.endswith(EMULATED):
        return Passed(f"{title} emulates FP32 on Tensor Cores{_reached(view, case)}")
    if judged.verdict in _ENGAGED:
        return Passed(f"{title} runs them in TF32 on Tensor Cores{_reached(view, case)}")
    broken = judged.verdict == "not engaged"
    if broken and not (case.seen.chip.has("tf32") is not False and _expected(run)):
        how = _how(judged.remedy)
        return Passed(f"{title} runs them in FP32: {inline(judged.cause).rstrip('.')}{how}")
    return (ON_CUDA_CORES if broken else UNKNOWN).found(
        judged.subjects,
        lines_of(view, case),
        advice=judged.remedy or run_again(view, case),
        framework=title,
        why=inline(judged.cause) if broken else judged.reason,
    )


def _expected(run: LevelRun) -> bool:
    """Whether the framework uses TF32 by default; in JAX that is its backend's choice."""
    framework, version = run.framework, known(run.framework_version) or ""
    if framework == "jax" or parse_version(version) is None:
        return False
    return not off_by_default(framework, version) and not older_than_tf32(framework, version)


def _how(remedy: Remedy | None) -> str:
    if remedy is None:
        return ""
    return (
        f" ({remedy.text.rstrip('.')}{': ' if remedy.commands else ''}{'; '.join(remedy.commands)})"
    )


def _reached(view: SnapshotView, case: Case) -> str:
    """Whether the override switches off what the default does, on the same GPU."""
    for other in all_cases(view):
        same = (other.judged.gpu, other.judged.framework) == (
            case.judged.gpu,
            case.judged.framework,
        )
        if not same or other.judged.setting != "override":
            continue
        if other.judged.verdict == "not engaged":
            return f"; {OVERRIDE}=0 switches that off"
        if other.judged.verdict in _ENGAGED:
            return f"; {OVERRIDE}=0 does not reach them"
    return ""
