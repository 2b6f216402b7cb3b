"""Checks on mixed precision as a program asks for it: Keras's policies, PyTorch's autocast and GradScaler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.missing import CouldNotRun, Skip
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Passed, Remedy, Verdict
from ...findings.shell import word
from ...tensorcores.circumstances import directory
from ..registry import check
from ..target import pip_install
from .common import NO_IMPORT, Seen, each_run, failed, number, ok

_KINDS = ("convolutions", "products")
_NO_ANSWER = ("timeout", "out-of-memory")

STAYS = Cause(
    "stays-in-32-bits",
    "fail",
    headline="{way} is on and {what} is computed in 16 bits",
    sentence="{way} is on in {title}, and {what} is computed in 16 bits ({counted}): training is as slow as"
    " without it.",
)
STEP_FAILS = Cause(
    "step-fails",
    "fail",
    headline="a step with {way} fails",
    sentence="A step of {title} runs in 32 bits, and with {way} it fails: {why}.",
    remedy="Check whether convolutions and products in 16 bits work by themselves: cuDNN and cuBLAS as they"
    " are loaded, and the micro-kernels.",
)
NO_SCALE = Cause(
    "no-loss-scale",
    "warn",
    headline="float16 without a loss scale",
    sentence="{title} trains in float16 without a loss scale: small gradients become 0.",
)
OVERFLOW_APPLIED = Cause(
    "overflow-in-weights",
    "fail",
    headline="an overflow gets into the weights",
    sentence="{scaler} in {title}: an overflow gets into the weights, which are lost with it.",
)
SCALE_STAYS = Cause(
    "loss-scale-stays",
    "fail",
    headline="the loss scale stays at {after:g} at an overflow",
    sentence="{scaler} in {title}: the loss scale stays at {after:g} at an overflow: every further step is"
    " skipped.",
)
NOTHING_LEARNT = Cause(
    "step-without-effect",
    "fail",
    headline="an ordinary step leaves the weights as they were",
    sentence="{scaler} in {title}: an ordinary step leaves the weights as they were: nothing is learnt.",
)
CAUSES = (STAYS, STEP_FAILS, NO_SCALE, OVERFLOW_APPLIED, SCALE_STAYS, NOTHING_LEARNT)


class _Way(NamedTuple):
    """One way to ask for mixed precision, and the trials that ran it."""

    name: str  # "mixed_float16"
    trial: str
    control: str
    remedy: Remedy  # where it does nothing


@check(
    "ACC-003",
    title="AMP in Keras",
    causes=CAUSES,
    about=(
        "Under the policies mixed_float16 and mixed_bfloat16 the step that fit() runs must have its "
        "convolutions and products in 16 bits, its weights in 32, and under mixed_float16 a loss scale, "
        "which falls where a gradient overflows while the weights stay as they are. A tiny model is trained "
        "a step under each, and under float32 as the control, in which nothing may be in 16 bits. What XLA "
        "makes of the step afterwards is not seen in it."
    ),
    sources=(
        "tensorflow.org/guide/mixed_precision; keras.io/api/mixed_precision",
        "observed in TensorFlow 2.1, 2.3, 2.15 (Keras 2) and 2.21 (Keras 3)",
    ),
    follows=NO_IMPORT,
    systems=("amp-keras",),
)
def keras_computes_in_half(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        half = _Way("mixed_float16", "mixed_float16", "float32", _set_policy(view, seen))
        bfloat = half._replace(name="mixed_bfloat16", trial="mixed_bfloat16")
        problems = _types(view, seen, half) or _loss_scale(
            seen, seen.trial(half.trial), "Keras", _wrap(view, seen)
        )
        # Not every GPU and version has convolutions of bfloat16, and says so when it is asked.
        other = seen.trial(bfloat.trial)
        if other is not None and other.outcome == "ok":
            problems += _types(view, seen, bfloat)
        if problems:
            yield from problems
            return
        main = _needed(seen, half.trial)
        details = [f"mixed_float16: {_counted(main)}, {_fallen(main)}"]
        if other is not None and other.outcome == "ok":
            details.append(f"mixed_bfloat16: {_counted(other)}")
        elif other is not None:
            details.append(f"mixed_bfloat16 does not run here: {failed(seen, other)}")
        yield Passed(f"{seen.title}: {'; '.join(details)}{seen.where}")

    yield from each_run(view, "amp-keras", judge, absent="the target has no TensorFlow")


@check(
    "ACC-004",
    title="AMP in PyTorch",
    causes=CAUSES,
    about=(
        "Under torch.autocast the convolutions and products of a step must run in 16 bits (float16 on a GPU, "
        "bfloat16 on the CPU), and GradScaler must lower its scale and skip the step where gradients "
        "overflow, so that the weights stay as they are. Both are run on a tiny model, beside "
        "enabled=False. The types are those of the operations that ran, as TorchDispatchMode sees them; "
        "before PyTorch 1.13, of what modules returned. Without CUDA, autocast for CUDA "
        "switches itself off with no more than a warning, which is shown as a detail."
    ),
    sources=("docs.pytorch.org/docs/stable/amp.html", "observed in PyTorch 1.12 and 2.13"),
    follows=NO_IMPORT,
    systems=("amp-torch",),
)
def torch_computes_in_half(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        remedy = _torch_again(view, seen)
        way = _Way("autocast", "autocast", "enabled=False", remedy)
        scaler = seen.trial("GradScaler")
        problems = _types(view, seen, way)
        scale = ""
        if scaler is not None and scaler.outcome == "not-supported":
            scale = f"; {failed(seen, scaler)}"
        else:
            control = seen.trial("GradScaler off")
            if control is not None and control.evidence.get("moved_by_overflow") is False:
                raise CouldNotRun(
                    f"{seen.title}: without GradScaler the overflow left the weights alone, too"
                )
            problems += _loss_scale(seen, scaler, "GradScaler", remedy)
        if problems:
            yield from problems
            return
        main = _needed(seen, way.trial)
        if not scale and scaler is not None:
            scale = f"; GradScaler: {_fallen(scaler)}"
        cuda = seen.trial("autocast for CUDA")
        off = cuda is not None and cuda.outcome == "ok" and not _halves(cuda)
        note = "; autocast for CUDA switches itself off here" if off else ""
        asked = main.evidence.get("asked")
        kind = f" to {asked}" if isinstance(asked, str) and asked else ""
        yield Passed(f"{seen.title}: autocast{kind}: {_counted(main)}{scale}{note}{seen.where}")

    yield from each_run(view, "amp-torch", judge, absent="the target has no PyTorch")


def _types(view: SnapshotView, seen: Seen, way: _Way) -> list[Verdict]:
    """What is wrong with the types of a step; raises CannotJudge where they cannot tell."""
    trial, control = seen.trial(way.trial), seen.trial(way.control)
    if trial is None or trial.outcome in _NO_ANSWER:
        raise CouldNotRun(f"{seen.title}: {way.name}: {failed(seen, trial)}")
    if trial.outcome == "not-supported":
        raise Skip(f"not applicable: {seen.title}: {trial.reason or way.name}")
    why = failed(seen, trial).rstrip(".")
    if trial.outcome != "ok" and (not ok(control) or seen.run.device == "cpu"):
        return [seen.unjudged(f"{way.name}: {why}")]
    if trial.outcome != "ok":  # and the same step without mixed precision ran on that GPU
        log = seen.logged("cudnn", "cublas", "error")
        command = look(view, "libraries", "tensorcores")
        return [seen.found(STEP_FAILS, trial, more=log, commands=[command], way=way.name, why=why)]
    if control is None or not ok(control):
        why = failed(seen, control)
        raise CouldNotRun(f"{seen.title}: the control, {way.control}, did not run: {why}")
    if _halves(control):
        raise CouldNotRun(
            f"{seen.title}: the control, {way.control}, computes in 16 bits, too ({_counted(control)})"
        )
    if not sum(number(trial, kind) for kind in _KINDS):
        raise CouldNotRun(f"{seen.title}: {way.name}: no convolution and no product was seen")
    stays = [kind for kind in _KINDS if number(trial, kind) and not number(trial, f"{kind}_half")]
    if not stays:
        return []
    what = "nothing" if not _halves(trial) else f"no {' and no '.join(s[:-1] for s in stays)}"
    return [
        seen.found(
            *(STAYS, trial, control),
            advice=way.remedy,
            way=way.name,
            what=what,
            counted=_counted(trial),
        )
    ]


def _loss_scale(seen: Seen, trial: SystemTrial | None, name: str, remedy: Remedy) -> list[Verdict]:
    """What is wrong with the loss scale of a trial that ran."""
    if trial is None or trial.outcome != "ok":
        return [seen.unjudged(f"{name}: {failed(seen, trial)}")]
    evidence = trial.evidence
    if "scale" not in evidence:
        return [seen.found(NO_SCALE, trial, advice=remedy)]
    if not number(trial, "scale_after_overflow") or "moved_by_overflow" not in evidence:
        return [seen.unjudged(f"{name}: no overflow was seen")]
    before = number(trial, "scale") if name == "GradScaler" else number(trial, "scale_after_step")
    before = before or number(trial, "scale")
    after = number(trial, "scale_after_overflow")
    cause = None
    if evidence.get("moved_by_overflow") is not False:
        cause = OVERFLOW_APPLIED
    elif after >= before:
        cause = SCALE_STAYS
    elif evidence.get("moved_by_step") is False and not _fell_by_step(trial, name):
        cause = NOTHING_LEARNT
    return [seen.found(cause, trial, advice=remedy, scaler=name, after=after)] if cause else []


def _fell_by_step(trial: SystemTrial, name: str) -> bool:
    """Whether the ordinary step overflowed, too: a large first scale is meant to fall."""
    if name == "GradScaler":
        return number(trial, "scale_after_step") < 8.0  # which it was given for that step
    return number(trial, "scale_after_step") < number(trial, "scale")


def _needed(seen: Seen, name: str) -> SystemTrial:
    trial = seen.trial(name)
    if trial is None:
        raise CouldNotRun(f"{seen.title}: {name}: {failed(seen, trial)}")
    return trial


def _halves(trial: SystemTrial) -> float:
    return sum(number(trial, f"{kind}_half") for kind in _KINDS)


def _counted(trial: SystemTrial) -> str:
    """ "3 of 3 convolutions and 3 of 3 products in 16 bits" """
    parts = [
        f"{number(trial, f'{kind}_half'):g} of {number(trial, kind):g} {kind}" for kind in _KINDS
    ]
    return f"{' and '.join(parts)} in 16 bits"


def _fallen(trial: SystemTrial) -> str:
    before, after = number(trial, "scale"), number(trial, "scale_after_overflow")
    return f"loss scale {before:.6g} to {after:.6g} at an overflow, which the weights do not see"


def look(view: SnapshotView, *areas: str) -> str:
    """The command that looks at these areas of the same target."""
    place = directory(view)
    target = f"--target {word(place)} " if place else ""
    return f"envcheck doctor {target}-v --only {' '.join(areas)}"


def _version(seen: Seen) -> str:
    return known(seen.run.framework_version) or ""


def _is_before(seen: Seen, other: str) -> bool:
    mine, that = parse_version(_version(seen)), parse_version(other)
    return mine is not None and that is not None and mine < that


def _newer_tensorflow(view: SnapshotView, words: str) -> Remedy:
    return Remedy(words, [pip_install(view, "tensorflow>=2.4")])


def _set_policy(view: SnapshotView, seen: Seen) -> Remedy:
    if _is_before(seen, "2.4"):
        words = (
            "Use TensorFlow 2.4 or later, where the policies are no experiment any more: "
            "tf.keras.mixed_precision.set_global_policy('mixed_float16')."
        )
        return _newer_tensorflow(view, words)
    if _is_before(seen, "2.16"):
        version = parse_version(_version(seen))
        minor = f"{version.major}.{version.minor}" if version is not None else "2"
        return Remedy(
            "Install Keras of TensorFlow's own minor version, and set the policy before the first layer is "
            "made: tf.keras.mixed_precision.set_global_policy('mixed_float16').",
            [pip_install(view, f"keras=={minor}.*") + " --force-reinstall --no-deps"],
        )
    return Remedy(
        "Install Keras 3 again, without TF_USE_LEGACY_KERAS where tf_keras is not of TensorFlow's minor "
        "version, and set the policy before the first layer is made: "
        "keras.mixed_precision.set_dtype_policy('mixed_float16').",
        [pip_install(view, "keras>=3.0") + " --force-reinstall --no-deps"],
    )


def _wrap(view: SnapshotView, seen: Seen) -> Remedy:
    if _is_before(seen, "2.4"):
        words = (
            "Wrap the optimizer: tf.keras.mixed_precision.experimental.LossScaleOptimizer(optimizer, "
            "'dynamic'); better, use TensorFlow 2.4 or later."
        )
        return _newer_tensorflow(view, words)
    name = "tf.keras.mixed_precision" if _is_before(seen, "2.16") else "keras.optimizers"
    return Remedy(
        f"Wrap the optimizer by hand, {name}.LossScaleOptimizer(optimizer), or train in "
        "mixed_bfloat16, which needs no loss scale, from Ampere on."
    )


def _torch_again(view: SnapshotView, seen: Seen) -> Remedy:
    if _is_before(seen, "1.10"):
        words = "Use PyTorch 1.10 or later, which has torch.autocast."
        return Remedy(words, [pip_install(view, "torch>=1.10")])
    release = _version(seen).partition("+")[0]
    again = pip_install(view, f"torch=={release}") + " --force-reinstall --no-deps"
    return Remedy(
        "Install PyTorch again, and check that nothing in the environment switches autocast off "
        "(sitecustomize, a wrapper around torch).",
        [again] if parse_version(release) is not None else [],
    )
