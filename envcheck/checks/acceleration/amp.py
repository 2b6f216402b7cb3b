"""Checks on mixed precision: by graph rewrite, by Keras's policies, by PyTorch's autocast and GradScaler."""

from __future__ import annotations

from packaging.version import Version

from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...facts.missing import CannotJudge, CouldNotRun, Skip
from ...tensorcores.circumstances import directory
from ..declared import declared_causes
from ..environment.misleading import is_true
from ..kernel.events import gpu_at
from ..reading import SnapshotView, known
from ..target import pip_install
from ..verdicts import Finding, Passed, Remedy, Verdict, Verdicts, check, fill_in, unjudged, word
from .common import Seen, each_run, failed, number, ok, text, words

CAUSE = declared_causes(__name__)

_KINDS = ("convolutions", "products")
# How the graph rewrite is asked for, by the trials' names.
_REWRITES = {"session": "AMP of a wrapped optimizer", "function": "AMP of tf.function"}
_SUITABLE = Version("7.0")  # the first compute capability that the rewrite takes
_SWITCHES = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"
_GIVEN_SCALE = 8.0  # GradScaler's for its ordinary step, as the collector sets it

CAUSES = (
    CAUSE["stays-in-32-bits"],
    CAUSE["step-fails"],
    CAUSE["no-loss-scale"],
    CAUSE["loss-scale-broken"],
)


@check("ACC-001")
def graph_is_rewritten(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        tried = {way: trial for way in _REWRITES if (trial := seen.trial(way)) is not None}
        there = [way for way, trial in tried.items() if trial.outcome != "not-supported"]
        why_not = "the rewrite is for GPUs" if seen.run.device == "cpu" else _too_old(view, seen)
        if tried and not there:
            why_not = "; ".join(dict.fromkeys(failed(seen, trial) for trial in tried.values()))
        problems: list[Verdict] = [] if tried else [seen.unjudged(failed(seen, None))]
        engaged = []
        for way in there if not why_not else ():
            try:
                problems += _rewrite(view, seen, tried[way], way)
            except CannotJudge as why:
                problems.append(unjudged(why, seen.subjects))
            if _halves(tried[way]):
                engaged.append(f"{_counted(tried[way])} ({_REWRITES[way]})")
        if why_not:
            yield seen.not_applicable(why_not)
        else:
            found = [one for one in problems if isinstance(one, Finding)]  # one remedy for all
            yield from found[:1] or problems or [Passed(f"{seen.title}: {'; '.join(engaged)}")]

    yield from each_run(view, "amp-graph", judge, absent="the target has no TensorFlow")


def _rewrite(view: SnapshotView, seen: Seen, trial: SystemTrial, way: str) -> list[Verdict]:
    settings = words(seen.trial("variables"), "set")
    pairs = [one.partition("=") for one in settings]
    asked = any(name.startswith("TF_ENABLE_") and is_true(value) for name, _, value in pairs)
    if asked and "RuntimeError" in trial.reason:
        why = "AMP is asked for by a variable already, which excludes wrapping the optimizer"
        return [seen.not_applicable(why)]
    switches = [name for name, _, _ in pairs if name.startswith(_SWITCHES)]
    return _types(view, seen, way, f"{way} off", _rewrite_again(seen, switches), _REWRITES[way])


def _too_old(view: SnapshotView, seen: Seen) -> str:
    """Why no rewrite is to be expected on this GPU; "" where one is."""
    gpu = gpu_at(view, next(iter(seen.run.gpus), ""))
    own = (known(gpu.compute_capability) or "") if gpu is not None else ""
    capability = parse_version(own)
    if capability is None or capability >= _SUITABLE:
        return ""
    return f"the GPU has compute capability {own}, and the rewrite wants {_SUITABLE}"


@check("ACC-003", causes=CAUSES)
def keras_computes_in_half(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        remedy = _keras_again(view, seen)
        half, bfloat = seen.trial("mixed_float16"), seen.trial("mixed_bfloat16")
        problems = _types(view, seen, "mixed_float16", "float32", remedy)
        problems = problems or _loss_scale(seen, half, "Keras", remedy)
        if ok(bfloat):  # not every GPU and version has convolutions of bfloat16
            problems += _types(view, seen, "mixed_bfloat16", "float32", remedy)
            other = f": {_counted(bfloat)}"
        else:
            other = f" does not run here: {failed(seen, bfloat)}"
        yield from problems or [
            Passed(
                f"{seen.title}: mixed_float16: {_counted(half)}, {_fallen(half)};"
                f" mixed_bfloat16{other}{seen.where}"
            )
        ]

    yield from each_run(view, "amp-keras", judge, absent="the target has no TensorFlow")


@check("ACC-004", causes=CAUSES)
def torch_computes_in_half(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        remedy = _torch_again(view, seen)
        main, scaler = seen.trial("autocast"), seen.trial("GradScaler")
        problems = _types(view, seen, "autocast", "enabled=False", remedy)
        scale = "; " + failed(seen, scaler)
        if scaler is None or scaler.outcome != "not-supported":
            control = seen.trial("GradScaler off")
            if control is not None and control.evidence.get("moved_by_overflow") is False:
                why = "without GradScaler the overflow left the weights alone, too"
                raise CouldNotRun(f"{seen.title}: {why}")
            problems += _loss_scale(seen, scaler, "GradScaler", remedy)
            scale = f"; GradScaler: {_fallen(scaler)}"
        kind = f" to {text(main, 'asked')}" if text(main, "asked") else ""
        yield from problems or [
            Passed(f"{seen.title}: autocast{kind}: {_counted(main)}{scale}{seen.where}")
        ]

    yield from each_run(view, "amp-torch", judge, absent="the target has no PyTorch")


def _types(
    view: SnapshotView, seen: Seen, way: str, without: str, remedy: Remedy, called: str = ""
) -> list[Verdict]:
    """What is wrong with the types of a step; raises CannotJudge where they cannot tell.

    called: AMP, as it was asked for, if not by the trial's name.
    """
    called = called or way
    trial, control = seen.trial(way), seen.trial(without)
    if trial is not None and trial.outcome == "not-supported":
        raise Skip(f"not applicable: {seen.title}: {trial.reason or called}")
    doubt = ""
    if trial is None or not ok(trial):
        why = failed(seen, trial).rstrip(".")
        broken = trial is not None and trial.outcome not in ("timeout", "out-of-memory")
        if broken and ok(control) and seen.run.device != "cpu":
            return [_step_fails(view, seen, trial, called, why)]
        doubt = f"{called}: {why}"
    elif not ok(control):
        doubt = f"the control, {without}, did not run: {failed(seen, control)}"
    elif _halves(control):
        doubt = f"the control, {without}, computes in 16 bits, too ({_counted(control)})"
    elif not sum(number(trial, kind) for kind in _KINDS):
        by_xla = " (XLA compiled the step)" if number(trial, "xla_nodes") else ""
        doubt = f"{called}: no convolution and no product was seen{by_xla}"
    elif seen.run.device == "gpu" and trial.evidence.get("places") == ["CPU"]:
        doubt = f"{called}: its step ran on the CPU"
    if doubt:
        raise CouldNotRun(f"{seen.title}: {doubt}")
    stays = [kind for kind in _KINDS if number(trial, kind) and not _half(trial, kind)]
    if not stays:
        return []
    what = f"no {' and no '.join(kind[:-1] for kind in stays)}" if _halves(trial) else "nothing"
    counted = _counted(trial)
    return [
        seen.found(
            CAUSE["stays-in-32-bits"],
            trial,
            control,
            advice=remedy,
            way=called,
            what=what,
            counted=counted,
        )
    ]


def _step_fails(
    view: SnapshotView, seen: Seen, trial: SystemTrial | None, way: str, why: str
) -> Finding:
    log = seen.logged("cudnn", "cublas", "error")
    commands = [look(view, "libraries", "tensorcores")]
    return seen.found(CAUSE["step-fails"], trial, more=log, commands=commands, way=way, why=why)


def _loss_scale(seen: Seen, trial: SystemTrial | None, name: str, remedy: Remedy) -> list[Verdict]:
    """What is wrong with the loss scale of a trial that ran."""
    if trial is None or not ok(trial):
        return [seen.unjudged(f"{name}: {failed(seen, trial)}")]
    evidence = trial.evidence
    if "scale" not in evidence:
        return [seen.found(CAUSE["no-loss-scale"], trial)]
    if not number(trial, "scale_after_overflow") or "moved_by_overflow" not in evidence:
        return [seen.unjudged(f"{name}: no overflow was seen")]
    stepped, after = number(trial, "scale_after_step"), number(trial, "scale_after_overflow")
    # GradScaler meets the overflow first, Keras the ordinary step.
    given = _GIVEN_SCALE if name == "GradScaler" else number(trial, "scale")
    before = number(trial, "scale") if name == "GradScaler" else stepped or given
    what = ""
    if evidence.get("moved_by_overflow") is not False:
        what = "an overflow gets into the weights"
    elif after >= before:
        what = f"the loss scale stays at {after:g} at an overflow"
    elif evidence.get("moved_by_step") is False and stepped >= given:
        # A first scale that is too large is meant to fall, too.
        what = "an ordinary step leaves the weights as they were"
    return (
        [seen.found(CAUSE["loss-scale-broken"], trial, advice=remedy, scaler=name, what=what)]
        if what
        else []
    )


def _half(trial: SystemTrial | None, kind: str) -> float:
    return number(trial, f"{kind}_half") or number(trial, f"half_{kind}")


def _halves(trial: SystemTrial | None) -> float:
    return sum(_half(trial, kind) for kind in _KINDS)


def _counted(trial: SystemTrial | None) -> str:
    """ "3 of 3 convolutions and 3 of 3 products in 16 bits" """
    parts = [f"{_half(trial, kind):g} of {number(trial, kind):g} {kind}" for kind in _KINDS]
    return f"{' and '.join(parts)} in 16 bits"


def _fallen(trial: SystemTrial | None) -> str:
    before, after = number(trial, "scale"), number(trial, "scale_after_overflow")
    return f"loss scale {before:.6g} to {after:.6g} at an overflow, which the weights do not see"


def look(view: SnapshotView, *areas: str) -> str:
    """The command that looks at these areas of the same target."""
    place = directory(view)
    target = f"--target {word(place)} " if place else ""
    return f"envcheck doctor {target}-v --only {' '.join(areas)}"


def _keras_again(view: SnapshotView, seen: Seen) -> Remedy:
    version = parse_version(seen.version)
    own = version is not None and version.release[:2] < (2, 16)
    keras = f"keras=={version.major}.{version.minor}.*" if own and version else "keras>=3.0"
    return Remedy(
        f"Install the Keras that belongs to this TensorFlow again{'' if own else ' (without tf_keras)'}, and"
        " set the policy before the first layer is made.",
        [pip_install(view, keras) + " --force-reinstall --no-deps"],
    )


def _torch_again(view: SnapshotView, seen: Seen) -> Remedy:
    release = seen.version.partition("+")[0]
    again = pip_install(view, f"torch=={release}") + " --force-reinstall --no-deps"
    return Remedy(
        "Install PyTorch again, and check that nothing in the environment switches autocast off "
        "(sitecustomize, a wrapper around torch).",
        [again] if parse_version(release) is not None else [],
    )


def _rewrite_again(seen: Seen, switches: list[str]) -> Remedy:
    if switches:
        commands = [f"unset {name}" for name in switches]
        return Remedy("Leave it to the rewrite what it takes.", commands)
    version = parse_version(seen.version)
    if version is not None and version >= Version("2.4"):
        return Remedy(
            "Use Keras's policy, the supported way in this TensorFlow: "
            "tf.keras.mixed_precision.set_global_policy('mixed_float16')."
        )
    program = fill_in("SCRIPT", "your program")
    logged = "TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=auto_mixed_precision=2"
    return Remedy("Let the rewrite say why.", [f"{logged} python {program}"])
