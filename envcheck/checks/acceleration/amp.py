"""Checks on mixed precision as a program asks for it: Keras's policies, PyTorch's autocast and GradScaler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.missing import CouldNotRun, Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.shell import word
from ...tensorcores.circumstances import directory
from ..registry import check
from ..target import pip_install
from .common import NO_IMPORT, Seen, each_run, failed, number

_KINDS = ("convolutions", "products")
_NO_ANSWER = ("timeout", "out-of-memory")


class _Way(NamedTuple):
    """One way to ask for mixed precision, and the trials that ran it."""

    name: str  # "the policy mixed_float16"
    trial: str
    control: str
    remedy: Remedy  # where it does nothing


@check(
    "ACC-003",
    title="AMP in Keras",
    problem="Keras's mixed precision does nothing",
    about=(
        "Under the policies mixed_float16 and mixed_bfloat16 the step that fit() runs must have its "
        "convolutions and products in 16 bits, its weights in 32, and under mixed_float16 a loss scale, "
        "which falls where a gradient overflows while the weights stay as they are. A tiny model is trained "
        "a step under each, and under float32 as the control, in which nothing may be in 16 bits. A failure "
        "where a policy is set and the step stays in 32 bits, or where an overflow gets into the weights. "
        "What XLA makes of the step afterwards is not seen in it."
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
        told = [f"mixed_float16: {_counted(main)}, {_fallen(main)}"]
        if other is not None and other.outcome == "ok":
            told.append(f"mixed_bfloat16: {_counted(other)}")
        elif other is not None:
            told.append(f"mixed_bfloat16 does not run here: {failed(seen, other)}")
        yield Passed(f"{seen.title}: {'; '.join(told)}{seen.where}")

    yield from each_run(view, "amp-keras", judge, absent="the target has no TensorFlow")


@check(
    "ACC-004",
    title="AMP in PyTorch",
    problem="PyTorch's autocast does nothing",
    about=(
        "Under torch.autocast the convolutions and products of a step must run in 16 bits (float16 on a GPU, "
        "bfloat16 on the CPU), and GradScaler must lower its scale and skip the step where gradients "
        "overflow, so that the weights stay as they are. Both are run on a tiny model and held against "
        "enabled=False. The types are those of the operations that ran, as TorchDispatchMode sees them; "
        "before PyTorch 1.13, of what modules returned. A failure where autocast is on and everything "
        "stays in 32 bits, or where an overflow gets into the weights. Without CUDA, autocast for CUDA "
        "switches itself off with no more than a warning: that is told as a detail."
    ),
    sources=(
        "docs.pytorch.org/docs/stable/amp.html",
        "observed in PyTorch 1.12 and 2.13",
    ),
    follows=NO_IMPORT,
    systems=("amp-torch",),
)
def torch_computes_in_half(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        way = _Way("autocast", "autocast", "enabled=False", _torch_again(view, seen))
        scaler = seen.trial("GradScaler")
        problems = _types(view, seen, way)
        scale = ""
        if scaler is not None and scaler.outcome == "not-supported":
            scale = f"; {failed(seen, scaler)}"
        else:
            problems += _without_scaler(seen) or _loss_scale(
                seen, scaler, "GradScaler", _torch_again(view, seen)
            )
        if problems:
            yield from problems
            return
        main = _needed(seen, way.trial)
        if not scale and scaler is not None:
            scale = f"; GradScaler: {_fallen(scaler)}"
        cuda = seen.trial("autocast for CUDA")
        off = cuda is not None and cuda.outcome == "ok" and not _halves(cuda)
        told = "; autocast for CUDA switches itself off here" if off else ""
        asked = main.evidence.get("asked")
        kind = f" to {asked}" if isinstance(asked, str) and asked else ""
        yield Passed(f"{seen.title}: autocast{kind}: {_counted(main)}{scale}{told}{seen.where}")

    yield from each_run(view, "amp-torch", judge, absent="the target has no PyTorch")


def _types(view: SnapshotView, seen: Seen, way: _Way) -> list[Verdict]:
    """What is wrong with the types of a step; raises CannotJudge where they cannot tell."""
    trial, control = seen.trial(way.trial), seen.trial(way.control)
    plain = control is not None and control.outcome == "ok"
    if trial is None or trial.outcome in _NO_ANSWER:
        raise CouldNotRun(f"{seen.title}: {way.name}: {failed(seen, trial)}")
    if trial.outcome == "not-supported":
        raise Skip(f"not applicable: {seen.title}: {trial.reason or way.name}")
    if trial.outcome != "ok":
        return [_raised(view, seen, way, trial, plain)]
    if control is None or not plain:
        raise CouldNotRun(
            f"{seen.title}: the control, {way.control}, did not run: {failed(seen, control)}"
        )
    if _halves(control):
        raise CouldNotRun(
            f"{seen.title}: the control, {way.control}, computes in 16 bits, too ({_counted(control)}): "
            f"what {way.name} does cannot be told"
        )
    if not sum(number(trial, kind) for kind in _KINDS):
        raise CouldNotRun(f"{seen.title}: {way.name}: no convolution and no product was seen")
    stays = [kind for kind in _KINDS if number(trial, kind) and not number(trial, f"{kind}_half")]
    if not stays:
        return []
    what = "nothing" if not _halves(trial) else f"no {' and no '.join(s[:-1] for s in stays)}"
    return [
        Finding(
            "fail",
            f"{way.name} is on in {seen.title}, and {what} is computed in 16 bits ({_counted(trial)}): "
            "training is as slow as without it.",
            seen.subjects,
            seen.evidence(trial, control),
            way.remedy,
            f"{way.name} is on and {what} is computed in 16 bits",
        )
    ]


def _raised(view: SnapshotView, seen: Seen, way: _Way, trial: SystemTrial, plain: bool) -> Verdict:
    """Of a trial that failed: a finding where the same step without mixed precision ran on that GPU."""
    if not plain or seen.run.device == "cpu":
        return Unjudged(
            "could-not-run", f"{seen.title}: {way.name}: {failed(seen, trial)}", seen.subjects
        )
    return Finding(
        "fail",
        f"A step of {seen.title} runs in 32 bits, and with {way.name} it fails: "
        f"{failed(seen, trial).rstrip('.')}.",
        seen.subjects,
        [*seen.evidence(trial), *seen.logged("cudnn", "cublas", "error")],
        Remedy(
            "See whether convolutions and products in 16 bits work by themselves: cuDNN and cuBLAS as "
            "they are loaded, and the micro-kernels.",
            [look(view, "libraries", "tensorcores")],
        ),
        f"a step with {way.name} fails",
    )


def _without_scaler(seen: Seen) -> list[Verdict]:
    """Raises CannotJudge where the control does not show what GradScaler must keep away."""
    control = seen.trial("GradScaler off")
    if control is not None and control.evidence.get("moved_by_overflow") is False:
        raise CouldNotRun(
            f"{seen.title}: without GradScaler the overflow left the weights alone, too: what it does "
            "cannot be told"
        )
    return []


def _loss_scale(seen: Seen, trial: SystemTrial | None, name: str, remedy: Remedy) -> list[Verdict]:
    """What is wrong with the loss scale of a trial that ran."""
    if trial is None or trial.outcome != "ok":
        reason = f"{seen.title}: {name}: {failed(seen, trial)}"
        return [Unjudged("could-not-run", reason, seen.subjects)]
    said = trial.evidence
    if "scale" not in said:
        return [
            Finding(
                "warn",
                f"{seen.title} trains in float16 without a loss scale: small gradients become 0.",
                seen.subjects,
                seen.evidence(trial),
                remedy,
                "float16 without a loss scale",
            )
        ]
    if not number(trial, "scale_after_overflow") or "moved_by_overflow" not in said:
        reason = f"{seen.title}: {name}: no overflow was seen"
        return [Unjudged("could-not-run", reason, seen.subjects)]
    before = number(trial, "scale") if name == "GradScaler" else number(trial, "scale_after_step")
    before = before or number(trial, "scale")
    after = number(trial, "scale_after_overflow")
    wrong = ""
    if said.get("moved_by_overflow") is not False:
        wrong = "an overflow gets into the weights, which are lost with it"
    elif after >= before:
        wrong = f"the loss scale stays at {after:g} at an overflow: every further step is skipped"
    elif said.get("moved_by_step") is False and not _fell_by_step(trial, name):
        wrong = "an ordinary step leaves the weights as they were: nothing is learnt"
    if not wrong:
        return []
    return [
        Finding(
            "fail",
            f"{name} in {seen.title}: {wrong}.",
            seen.subjects,
            seen.evidence(trial),
            remedy,
            wrong.partition(":")[0],
        )
    ]


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
    """ "3 of 3 convolutions and 3 of 3 products half" """
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


def _set_policy(view: SnapshotView, seen: Seen) -> Remedy:
    if _is_before(seen, "2.4"):
        return Remedy(
            "Use TensorFlow 2.4 or later, where the policies are no experiment any more: "
            "tf.keras.mixed_precision.set_global_policy('mixed_float16').",
            [pip_install(view, "tensorflow>=2.4")],
        )
    if _is_before(seen, "2.16"):
        return Remedy(
            "Install Keras of TensorFlow's own minor version, and set the policy before the first layer is "
            "made: tf.keras.mixed_precision.set_global_policy('mixed_float16').",
            [pip_install(view, f"keras=={_minor(seen)}.*") + " --force-reinstall --no-deps"],
        )
    return Remedy(
        "Install Keras 3 anew, without TF_USE_LEGACY_KERAS where tf_keras is not of TensorFlow's minor "
        "version, and set the policy before the first layer is made: "
        "keras.mixed_precision.set_dtype_policy('mixed_float16').",
        [pip_install(view, "keras>=3.0") + " --force-reinstall --no-deps"],
    )


def _minor(seen: Seen) -> str:
    version = parse_version(_version(seen))
    return f"{version.major}.{version.minor}" if version is not None else "2"


def _wrap(view: SnapshotView, seen: Seen) -> Remedy:
    if _is_before(seen, "2.4"):
        return Remedy(
            "Wrap the optimizer: tf.keras.mixed_precision.experimental.LossScaleOptimizer(optimizer, "
            "'dynamic'); better, use TensorFlow 2.4 or later.",
            [pip_install(view, "tensorflow>=2.4")],
        )
    name = "tf.keras.mixed_precision" if _is_before(seen, "2.16") else "keras.optimizers"
    return Remedy(
        f"Wrap the optimizer by hand, {name}.LossScaleOptimizer(optimizer), or train in "
        "mixed_bfloat16, which needs no loss scale, from Ampere on."
    )


def _torch_again(view: SnapshotView, seen: Seen) -> Remedy:
    release = _version(seen).partition("+")[0]
    again = pip_install(view, f"torch=={release}") + " --force-reinstall --no-deps"
    if _is_before(seen, "1.10"):
        return Remedy(
            "Use PyTorch 1.10 or later, which has torch.autocast.",
            [pip_install(view, "torch>=1.10")],
        )
    return Remedy(
        "Install PyTorch anew, and see that nothing in the environment switches autocast off "
        "(sitecustomize, a wrapper around torch).",
        [again] if parse_version(release) is not None else [],
    )
