"""Checks on AMP by graph rewrite in TensorFlow: half types in the graph that ran, asked for in each way."""

from __future__ import annotations

from packaging.version import Version

from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ..environment.mixed_precision import KERAS_HAS_IT, ask_in_program
from ..environment.speed import is_true
from ..reading import SnapshotView, known
from ..verdicts import (
    Cause,
    Finding,
    Passed,
    Remedy,
    Unjudged,
    Verdict,
    Verdicts,
    about,
    check,
    fill_in,
)
from .common import NO_IMPORT, Seen, each_run, failed, number, ok, text, words

SYSTEM = "amp-graph"
_ABSENT = "the target has no TensorFlow"
_SUITABLE = Version("7.0")  # the first compute capability that the rewrite takes
_SWITCHES = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"
_WAYS = {"session": "a wrapped optimizer", "function": "tf.function"}

NOTHING = Cause(
    "rewrite-changes-nothing",
    "fail",
    headline="AMP is on in {title} and changes nothing",
    sentence="AMP by graph rewrite, asked for by {ways}, changes nothing in {title}: all {convolutions:.9g}"
    " convolutions of a step stay in 32 bits.{because}",
)
STEP_FAILS = Cause(
    "step-fails",
    "fail",
    headline="a step that runs fails with AMP in {title}",
    sentence="In {title} a step that runs fails with AMP by graph rewrite ({way}): {why}.",
)
_FIXED = (
    "Take a fixed loss scale, enable_mixed_precision_graph_rewrite(optimizer, loss_scale=128.0), until this"
    " TensorFlow is replaced."
)
SPOILS = Cause(
    "overflow-in-weights",
    "fail",
    "AMP's loss scale in {title} spoils the weights at an overflow",
    "AMP's loss scale in {title} lets an overflow into the weights, which are no longer numbers.",
    _FIXED,
)
STOPS = Cause(
    "stops-after-overflow",
    "fail",
    "AMP's loss scale in {title} stops learning after an overflow",
    "AMP's loss scale in {title} takes no more steps after an overflow.",
    _FIXED,
)
STAYS = Cause(
    "loss-scale-stays",
    "fail",
    "AMP's loss scale in {title} does not fall at an overflow",
    "AMP's loss scale in {title} stays at {before:.9g} after an overflow: every further step overflows, and"
    " is skipped.",
    _FIXED,
)
NO_EFFECT = Cause(
    "variable-without-effect",
    "fail",
    headline="{name} is set and has no effect in {title}",
    sentence="{settings} has no effect in {title}: a step stays in 32 bits.",
)


@check(
    "ACC-001",
    title="AMP, graph rewrite",
    causes=[NOTHING, STEP_FAILS, SPOILS, STOPS, STAYS],
    about="A tiny training step is run with automatic mixed precision asked for as a program does (an"
    " optimizer wrapped by enable_mixed_precision_graph_rewrite, auto_mixed_precision for a tf.function), and"
    " with it off: engaged where the graph that ran has half types and the other has none. A forced overflow"
    " must lower the loss scale and leave the weights alone.",
    sources=(
        "TensorFlow's documentation of enable_mixed_precision_graph_rewrite and tf.config.optimizer",
        "tensorflow/tensorflow#33435",
    ),
    follows=NO_IMPORT,
    systems=(SYSTEM,),
)
def graph_is_rewritten(view: SnapshotView) -> Verdicts:
    yield from each_run(view, SYSTEM, _rewrite, absent=_ABSENT)


@check(
    "ACC-002",
    title="AMP by variable",
    causes=[NO_EFFECT],
    about="Only NVIDIA's builds of TensorFlow switch AMP on by TF_ENABLE_AUTO_MIXED_PRECISION or"
    " TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE. If one is set, a step runs on a GPU in a process"
    " with only that variable, and its graph must have half types.",
    sources=(
        "NVIDIA's TensorFlow 1.15 (meta_optimizer.cc, optimizer.py), read",
        "NVIDIA/tensorflow#39: TensorFlow 2.6 in NVIDIA's 21.10 says that it has no effect",
    ),
    follows=NO_IMPORT,
    systems=(SYSTEM,),
)
def variables_are_heeded(view: SnapshotView) -> Verdicts:
    yield from each_run(view, SYSTEM, _variable, absent=_ABSENT)


def _rewrite(seen: Seen) -> Verdicts:
    broken, scaling = _loss_scaling(seen)
    yield from broken
    states = {name: _state(seen, seen.trial(name), f"{name} off") for name in _WAYS}
    states = {name: state for name, state in states.items() if seen.trial(name) is not None}
    engaged = [name for name, state in states.items() if state == "engaged"]
    on_cpu = seen.run.device == "cpu"
    if on_cpu and _state(seen, seen.trial("bfloat16"), "function off") == "engaged":
        engaged.append("bfloat16")
    if engaged:
        amounts = [f"{_amount(seen.trial(name))} ({_WAYS.get(name, name)})" for name in engaged]
        yield Passed("; ".join([f"{seen.title}: {'; '.join(amounts)}{seen.where}", *scaling]))
    if on_cpu:
        if not engaged:
            yield _without_gpu(seen, states)
        return
    if not states:
        yield seen.unjudged(failed(seen, None))
    yield from _not_engaged(seen, states, bool(engaged))


def _not_engaged(seen: Seen, states: dict[str, str], engaged: bool) -> Verdicts:
    nothing = [name for name, state in states.items() if state == "nothing"]
    if nothing and not engaged and _too_old(seen):
        yield seen.not_applicable(_too_old(seen))
        return
    if nothing:
        yield _nothing(seen, nothing)
    reasons = [
        failed(seen, seen.trial(name)) for name, state in states.items() if state == "absent"
    ]
    if reasons and len(reasons) == len(states):
        yield seen.not_applicable("; ".join(dict.fromkeys(reasons)))
    for name, state in states.items():
        if state == "failed":
            yield _failed(seen, name)
        elif state not in ("engaged", "nothing", "absent"):
            yield seen.unjudged(f"{_WAYS[name]}: {state}")


def _state(seen: Seen, trial: SystemTrial | None, off: str) -> str:
    """ "engaged", "nothing", "failed", "absent", or why nobody can tell."""
    control = seen.trial(off)
    if trial is None or not ok(control):
        absent = trial is not None and trial.outcome == "not-supported"
        why = failed(seen, control if ok(trial) else trial)
        return (
            "absent"
            if absent
            else f"cannot tell: the step with the rewrite off did not run ({why})"
        )
    if trial.outcome != "ok":
        return "absent" if trial.outcome == "not-supported" else "failed"
    if _halves(control):
        return "cannot tell: half types are in its graph with the rewrite off, too"
    if _halves(trial):
        return "engaged"
    if not number(trial, "convolutions") and number(trial, "xla_nodes"):
        return "cannot tell: XLA compiled the step, and what it compiled shows no types"
    if not number(trial, "convolutions"):
        return "cannot tell: the graph that ran has no convolution in it"
    if seen.run.device == "gpu" and trial.evidence.get("places") == ["CPU"]:
        return "its step ran on the CPU"
    return "nothing"


def _halves(trial: SystemTrial | None) -> float:
    return number(trial, "half_convolutions") + number(trial, "half_products")


def _amount(trial: SystemTrial | None) -> str:
    """ "5 of 5 convolutions and 3 of 3 products in float16"."""
    half = " and ".join(words(trial, "types")) or "half precision"
    parts = [
        f"{number(trial, f'half_{kind}'):.10g} of {number(trial, kind):.10g} {kind}"
        for kind in ("convolutions", "products")
    ]
    return f"{' and '.join(parts)} in {half}"


def _too_old(seen: Seen) -> str:
    """Why no rewrite is to be expected on this GPU; "" where one is."""
    own = text(seen.trial("variables"), "compute_capability")
    capability = parse_version(own)
    if capability is None or capability >= _SUITABLE:
        return ""
    return f"the GPU has compute capability {own}, and the rewrite wants {_SUITABLE}"


def _asked(seen: Seen) -> dict[str, str]:
    """AMP's variables that are set to something true, with their values."""
    pairs = [one.partition("=") for one in words(seen.trial("variables"), "set")]
    return {name: value for name, _, value in pairs if name[:10] == "TF_ENABLE_" and is_true(value)}


def _nothing(seen: Seen, names: list[str]) -> Finding:
    variables = words(seen.trial("variables"), "set")
    switches = [one for one in variables if one.startswith(_SWITCHES)]
    because = f" {', '.join(switches)} is set, which changes what it takes." if switches else ""
    return seen.found(
        NOTHING,
        *map(seen.trial, names),
        more=seen.logged("auto_mixed_precision"),
        advice=_remedy(seen, [one.partition("=")[0] for one in switches]),
        ways=" and ".join(_WAYS[name] for name in names),
        convolutions=number(seen.trial(names[0]), "convolutions"),
        because=because,
    )


def _remedy(seen: Seen, switches: list[str]) -> Remedy:
    if switches:
        commands = [f"unset {name}" for name in switches]
        return Remedy("Leave it to the rewrite what it takes.", commands)
    version = parse_version(known(seen.run.framework_version) or "")
    if version is not None and version >= KERAS_HAS_IT:
        return Remedy(
            "Use Keras's policy, the supported way in this TensorFlow: "
            "tf.keras.mixed_precision.set_global_policy('mixed_float16')."
        )
    program = fill_in("SCRIPT", "your program")
    logged = "TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=auto_mixed_precision=2"
    return Remedy("Let the rewrite say why.", [f"{logged} python {program}"])


def _failed(seen: Seen, name: str) -> Verdict:
    trial, why = seen.trial(name), failed(seen, seen.trial(name))
    if "RuntimeError" in why and _asked(seen):
        forbidden = "by a variable already, which excludes wrapping the optimizer (ACC-002)"
        return seen.not_applicable(f"AMP is asked for {forbidden}")
    if trial is None or trial.outcome != "error":
        return seen.unjudged(f"{_WAYS[name]}: {why}")
    return seen.found(STEP_FAILS, trial, advice=_remedy(seen, []), way=_WAYS[name], why=why)


def _without_gpu(seen: Seen, states: dict[str, str]) -> Unjudged:
    unknown = [f"{_WAYS[name]}: {state}" for name, state in states.items() if " " in state]
    if unknown:
        return seen.unjudged("; ".join(unknown))
    if states and set(states.values()) == {"absent"}:
        return seen.not_applicable(failed(seen, seen.trial(next(iter(states)))))
    variables = seen.trial("variables")
    if variables is not None and variables.evidence.get("cuda_build") is False:
        return seen.not_applicable("built without CUDA, and the rewrite is for GPUs")
    return seen.unjudged("no GPU, and the rewrite wants one")


def _loss_scaling(seen: Seen) -> tuple[list[Finding], list[str]]:
    """(what is wrong with it, what it did in words)."""
    trial, control = seen.trial("loss scale"), seen.trial("loss scale off")
    overflowed = control is not None and control.evidence.get("weights_changed") is True
    if trial is None or not ok(trial) or not ok(control) or not overflowed:
        return [], []
    before, after = number(trial, "scale_before"), number(trial, "scale_after")
    cause = None
    if trial.evidence.get("weights_changed") is True:
        cause = SPOILS
    elif trial.evidence.get("next_step_changed") is False:
        cause = STOPS
    elif before and not 0 < after < before:
        cause = STAYS
    if cause is not None:
        return [seen.found(cause, trial, control, before=before)], []
    falls = f"at an overflow the loss scale falls from {before:.9g} to {after:.10g}"
    return [], [f"{falls} and the weights stay"] if before else []


def _variable(seen: Seen) -> Verdicts:
    asked, trial = _asked(seen), seen.trial("variable")
    if not ok(seen.trial("variables")):
        yield seen.unjudged(failed(seen, seen.trial("variables")))
    elif not asked:
        yield seen.not_applicable("no AMP variable is set")
    elif trial is None:
        on_cpu = seen.run.device == "cpu"
        yield seen.unjudged("no GPU to see it on" if on_cpu else failed(seen, None))
    else:
        yield _heeded(seen, trial, asked)


def _heeded(seen: Seen, trial: SystemTrial, asked: dict[str, str]) -> Verdict:
    state = _state(seen, trial, "session off")
    settings = ", ".join(f"{name}={value}" for name, value in asked.items())
    if state == "engaged":
        return Passed(f"{seen.title}: {settings}: {_amount(trial)}{seen.where}")
    if state == "nothing" and _too_old(seen):
        return seen.not_applicable(_too_old(seen))
    if state != "nothing":
        return seen.unjudged(f"{settings}: {trial.reason or state}")
    name = next(iter(asked))
    remedy = ask_in_program(parse_version(known(seen.run.framework_version) or ""), name)
    more = [f"unset {other}" for other in list(asked)[1:] if remedy.commands]
    return NO_EFFECT.found(
        [subject for one in asked for subject in about("variable", one)],
        [*seen.evidence(trial), *seen.logged("has no effect")],
        advice=Remedy(remedy.text, [*remedy.commands, *more]),
        name=name,
        settings=settings,
        title=seen.title,
    )
