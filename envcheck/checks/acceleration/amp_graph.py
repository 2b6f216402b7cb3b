"""Checks on AMP by graph rewrite in TensorFlow: half types in the graph that ran, and AMP's variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from packaging.version import Version

from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.subjects import about
from ..environment.mixed_precision import KERAS_HAS_IT, ask_in_program
from ..environment.speed import is_true
from ..registry import check
from .common import NO_FRAMEWORK, Seen, each_run, failed, number

SYSTEM = "amp-graph"
_ABSENT = "the target has no TensorFlow"
_ALL, _REWRITE, _SCALING = (
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE",
    "TF_ENABLE_AUTO_MIXED_PRECISION_LOSS_SCALING",
)
_SWITCHES = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"
_SUITABLE = Version("7.0")  # the first compute capability that the rewrite takes
# name: what it stands for, and the trial without it
_WAYS = {
    "session": ("a wrapped optimizer", "session off"),
    "function": ("tf.function", "function off"),
}


class Way(NamedTuple):
    """A way to ask for the rewrite, and what came of it."""

    title: str
    trial: SystemTrial
    state: str  # "engaged", "nothing", "failed", "absent", or one of _UNTOLD


@check(
    "ACC-001",
    title="AMP, graph rewrite",
    problem="AMP by graph rewrite changes nothing",
    about=(
        "TensorFlow's automatic mixed precision rewrites a graph before it runs: convolutions and products "
        "get half types, with casts around them, and the loss is scaled so that small gradients survive. A "
        "tiny training step is run with the rewrite asked for as a program does (an optimizer wrapped by "
        "enable_mixed_precision_graph_rewrite, and auto_mixed_precision for a tf.function), and once with "
        "it off. It is engaged where the graph that ran has half types and the other has none. A forced "
        "overflow must lower the loss scale and leave the weights alone. The rewrite wants a GPU of "
        "compute capability 7.0; on a CPU its form for bfloat16 is run instead, and where there is none, "
        "the graph is rewritten for a made-up GPU and not run. What XLA compiled shows no types: then "
        "nobody can tell."
    ),
    sources=(
        "TensorFlow's documentation of enable_mixed_precision_graph_rewrite and tf.config.optimizer",
        "TensorFlow 1.15.5, 2.15 and 2.21 on a CPU, observed",
        "tensorflow/tensorflow#33435",
    ),
    follows=NO_FRAMEWORK,
    systems=(SYSTEM,),
)
def graph_is_rewritten(view: SnapshotView) -> Iterator[Verdict]:
    yield from each_run(view, SYSTEM, _rewrite, absent=_ABSENT)


def _rewrite(seen: Seen) -> Iterator[Verdict]:
    broken, scaling = _loss_scaling(seen)
    yield from broken
    ways = [_way(seen, name) for name in _WAYS if seen.trial(name) is not None]
    engaged = [way for way in ways if way.state == "engaged"]
    if engaged:
        told = "; ".join(dict.fromkeys(f"{_amount(way.trial)} ({way.title})" for way in engaged))
        yield Passed("; ".join(filter(None, (f"{seen.title}: {told}{seen.where}", scaling))))
    if seen.run.device == "cpu":
        if not engaged:
            yield _without_gpu(seen, ways, scaling)
        return
    yield from _on_gpu(seen, ways, bool(engaged))


def _on_gpu(seen: Seen, ways: list[Way], engaged: bool) -> Iterator[Verdict]:
    """What there is to say of the ways that did not engage."""
    by_state: dict[str, list[Way]] = {}
    for way in ways:
        by_state.setdefault(way.state, []).append(way)
    too_old = _too_old(seen)
    nothing = by_state.get("nothing", [])
    if nothing and too_old and not engaged:
        yield _skipped(seen, too_old)
        return
    if nothing:
        yield _nothing(seen, nothing)
    for way in by_state.get("failed", []):
        yield _failed(seen, way)
    for state, words in _UNTOLD.items():
        for way in by_state.get(state, []):
            yield _cannot_tell(seen, way, words)
    absent = by_state.get("absent", [])
    if absent and len(absent) == len(ways):
        yield _skipped(seen, "; ".join(dict.fromkeys(way.trial.reason for way in absent)))
    elif not ways:
        yield _untold(seen, failed(seen, None))


_UNTOLD = {
    "hidden": "cannot tell: XLA compiled the step, and what it compiled shows no types",
    "unseen": "cannot tell: the graph that ran has no convolution in it",
    "elsewhere": "its step ran on the CPU",
    "both": "cannot tell: half types are in its graph with the rewrite off, too",
    "alone": "cannot tell: the step with the rewrite off did not run",
}


def _cannot_tell(seen: Seen, way: Way, words: str) -> Unjudged:
    why = f" ({way.trial.reason})" if way.trial.reason else ""
    return Unjudged("could-not-run", f"{seen.title}, {way.title}: {words}{why}", seen.subjects)


def _untold(seen: Seen, why: str) -> Unjudged:
    return Unjudged("could-not-run", f"{seen.title}: {why}", seen.subjects)


def _skipped(seen: Seen, why: str) -> Unjudged:
    return Unjudged("skipped", f"not applicable: {seen.title}: {why}", seen.subjects)


def _way(seen: Seen, name: str, trial: SystemTrial | None = None) -> Way:
    title, off = _WAYS[name]
    trial = trial or seen.trial(name)
    assert trial is not None
    return Way(title, trial, _state(seen, trial, seen.trial(off)))


def _state(seen: Seen, trial: SystemTrial, control: SystemTrial | None) -> str:
    if trial.outcome == "not-supported":
        return "absent"
    without = control is not None and control.outcome == "ok"
    if trial.outcome != "ok":
        return "failed" if without else "alone"
    if not without:
        return "alone"
    if _halves(control):
        return "both"
    if _halves(trial):
        return "engaged"
    if not number(trial, "convolutions"):
        return "hidden" if number(trial, "xla_nodes") else "unseen"
    if seen.run.device == "gpu" and trial.evidence.get("places") == ["CPU"]:
        return "elsewhere"
    return "nothing"


def _halves(trial: SystemTrial | None) -> float:
    return number(trial, "half_convolutions") + number(trial, "half_products")


def _amount(trial: SystemTrial) -> str:
    """ "5 of 5 convolutions and 3 of 3 products in float16"."""
    types = trial.evidence.get("types")
    half = " and ".join(types) if isinstance(types, list) and types else "half precision"
    parts = [
        f"{number(trial, f'half_{kind}'):.10g} of {number(trial, kind):.10g} {kind}"
        for kind in ("convolutions", "products")
    ]
    return f"{' and '.join(parts)} in {half}"


def _nothing(seen: Seen, ways: list[Way]) -> Finding:
    titles = " and ".join(way.title for way in ways)
    amount = number(ways[0].trial, "convolutions")
    switches = [one for one in _set(seen) if one.startswith(_SWITCHES)]
    because = f" {', '.join(switches)} is set, which changes what it takes." if switches else ""
    return Finding(
        "fail",
        f"AMP by graph rewrite, asked for by {titles}, changes nothing in {seen.title}: all {amount:.10g} "
        f"convolutions of a step stay in 32 bits.{because}",
        seen.subjects,
        [*seen.evidence(*(way.trial for way in ways)), *seen.logged("auto_mixed_precision")],
        _remedy(seen, [one.partition("=")[0] for one in switches]),
        headline=f"AMP is on in {seen.title} and changes nothing",
    )


def _remedy(seen: Seen, switches: list[str]) -> Remedy:
    if switches:
        return Remedy(
            "Leave it to the rewrite what it takes.", [f"unset {name}" for name in switches]
        )
    version = parse_version(known(seen.run.framework_version) or "")
    if version is not None and version >= KERAS_HAS_IT:
        return Remedy(
            "Use Keras's policy, the supported way in this TensorFlow: "
            "tf.keras.mixed_precision.set_global_policy('mixed_float16')."
        )
    return Remedy(
        "Let the rewrite say why, with your own program in place of train.py.",
        ["TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=auto_mixed_precision=2 python train.py"],
    )


def _failed(seen: Seen, way: Way) -> Verdict:
    if _clash(seen, way.trial):
        words = "by a variable already, which excludes wrapping the optimizer (ACC-002)"
        return _skipped(seen, f"AMP is asked for {words}")
    if way.trial.outcome != "error":
        return Unjudged(
            "could-not-run", f"{seen.title}, {way.title}: {failed(seen, way.trial)}", seen.subjects
        )
    return Finding(
        "fail",
        f"In {seen.title} a step that runs fails with AMP by graph rewrite ({way.title}): "
        f"{failed(seen, way.trial)}.",
        seen.subjects,
        seen.evidence(way.trial),
        _remedy(seen, []),
        headline=f"a step that runs fails with AMP in {seen.title}",
    )


def _clash(seen: Seen, trial: SystemTrial | None) -> bool:
    """Whether a variable that this build heeds forbade wrapping the optimizer."""
    if trial is None or trial.outcome != "error" or "RuntimeError" not in trial.reason:
        return False
    return any(is_true(value) and name in _known(seen) for name, value in _asked(seen).items())


def _too_old(seen: Seen) -> str:
    """Why no rewrite is to be expected on this GPU; "" where one is."""
    words = seen.trial("variables")
    text = words.evidence.get("compute_capability") if words is not None else None
    capability = parse_version(text) if isinstance(text, str) else None
    if capability is None or capability >= _SUITABLE:
        return ""
    return f"the GPU has compute capability {text}, and the rewrite wants {_SUITABLE}"


def _without_gpu(seen: Seen, ways: list[Way], scaling: str) -> Verdict:
    """On a CPU: the rewrite for bfloat16 that ran, or what keeps it from running."""
    bfloat16 = seen.trial("bfloat16")
    if bfloat16 is not None:
        way = _way(seen, "function", bfloat16)
        if way.state == "engaged":
            told = f"{seen.title}: {_amount(bfloat16)}{seen.where}"
            return Passed("; ".join(filter(None, (told, scaling))))
    for way in ways:
        if way.state in ("hidden", "both"):
            return _cannot_tell(seen, way, _UNTOLD[way.state])
    if ways and all(way.state == "absent" for way in ways):
        return _skipped(seen, ways[0].trial.reason)
    made_up = seen.trial("made-up GPU")
    rewrites = ""
    if made_up is not None and _state(seen, made_up, seen.trial("made-up GPU off")) == "engaged":
        rewrites = f"; for a made-up one it would put {_amount(made_up)}"
    words = seen.trial("variables")
    if words is not None and words.evidence.get("cuda_build") is False:
        return _skipped(seen, f"built without CUDA, and the rewrite is for GPUs{rewrites}")
    return _untold(seen, f"no GPU, and the rewrite wants one{rewrites}")


def _loss_scaling(seen: Seen) -> tuple[list[Finding], str]:
    """(what is wrong with it, what it did in words)."""
    trial, control = seen.trial("loss scale"), seen.trial("loss scale off")
    if trial is None or trial.outcome != "ok" or control is None or control.outcome != "ok":
        return [], ""
    if control.evidence.get("weights_changed") is not True:
        return [], ""  # it was no overflow
    before, after = number(trial, "scale_before"), number(trial, "scale_after")
    wrong = headline = ""
    if trial.evidence.get("weights_changed") is True:
        wrong = "lets an overflow into the weights, which are no numbers any more"
        headline = "spoils the weights at an overflow"
    elif trial.evidence.get("next_step_changed") is False:
        wrong = "takes no step any more after an overflow"
        headline = "stops learning after an overflow"
    elif before and not 0 < after < before:
        wrong = f"stays at {before:.10g} after an overflow: every further step overflows, and is skipped"
        headline = "does not fall at an overflow"
    if wrong:
        finding = Finding(
            "fail",
            f"AMP's loss scale in {seen.title} {wrong}.",
            seen.subjects,
            seen.evidence(trial, control),
            Remedy(
                "Take a fixed loss scale, "
                "enable_mixed_precision_graph_rewrite(optimizer, loss_scale=128.0), until this TensorFlow is "
                "replaced."
            ),
            headline=f"AMP's loss scale in {seen.title} {headline}",
        )
        return [finding], ""
    if not before:
        return [], ""
    return (
        [],
        f"at an overflow the loss scale falls from {before:.10g} to {after:.10g} and the weights stay",
    )


@check(
    "ACC-002",
    title="AMP by variable",
    problem="an AMP variable does nothing in this TensorFlow",
    about=(
        "NVIDIA's builds of TensorFlow 1 switch AMP on by TF_ENABLE_AUTO_MIXED_PRECISION=1 or "
        "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE=1 (which wins where both are set), and its loss "
        "scaling by TF_ENABLE_AUTO_MIXED_PRECISION_LOSS_SCALING=1. Other builds do not know these names: "
        "they are looked for in the libraries that TensorFlow loaded and in its source of optimizers. A "
        "failure where one is set that this build does not know, or that it knows and says has no effect. "
        "Where it is known, a step is run on a GPU in a process with the variable alone, and must have "
        "half types in its graph. A program that wraps its optimizer as well stops there with a "
        "RuntimeError."
    ),
    sources=(
        "NVIDIA's TensorFlow 1.15 (meta_optimizer.cc, optimizer.py), read",
        "TensorFlow 1.15.5, 2.15 and 2.21, observed: the variables' names are not in them",
        "NVIDIA/tensorflow#39: TensorFlow 2.6 in NVIDIA's 21.10 says that it has no effect",
    ),
    follows=NO_FRAMEWORK,
    systems=(SYSTEM,),
)
def variables_are_heeded(view: SnapshotView) -> Iterator[Verdict]:
    yield from each_run(view, SYSTEM, _variables, absent=_ABSENT)


def _variables(seen: Seen) -> Iterator[Verdict]:
    words = seen.trial("variables")
    if words is None or words.outcome != "ok":
        yield _untold(seen, failed(seen, words))
        return
    asked = {name: value for name, value in _asked(seen).items() if is_true(value)}
    heeded = _known(seen)
    unknown = [name for name in asked if name not in heeded]
    if unknown and not words.evidence.get("rewrite_found"):
        yield _untold(seen, "the library that has the rewrite was not found")
        return
    if unknown:
        yield _ignored(seen, words, unknown)
        return
    overruled = _overruled(seen)
    if overruled and heeded:
        yield overruled
        return
    if words.evidence.get("no_effect") is True and asked:
        yield _without_effect(seen, words, next(iter(asked)))
        return
    if not heeded:
        yield _skipped(seen, "no AMP variable is set, and this build knows none")
        return
    yield from _tried(seen, words, asked)


def _tried(seen: Seen, words: SystemTrial, asked: dict[str, str]) -> Iterator[Verdict]:
    """What a process did in which the variable alone asks for AMP."""
    trial = seen.trial("variable")
    if words.evidence.get("no_effect") is True:
        yield _skipped(seen, "no AMP variable is set, and this build says that they have no effect")
        return
    if trial is None:
        why = "no GPU to see it on" if seen.run.device == "cpu" else failed(seen, None)
        yield _untold(seen, why)
        return
    told = trial.evidence.get("asked")
    name = ", ".join(told) if isinstance(told, list) else _ALL
    state = _state(seen, trial, seen.trial("session off"))
    if state == "engaged":
        scaled = trial.evidence.get("loss_scaling") is True
        scaling = "with loss scaling" if scaled else "without loss scaling of its own"
        clash = asked and _clash(seen, seen.trial("session"))
        more = "; a program that wraps its optimizer as well stops with a RuntimeError"
        yield Passed(
            f"{seen.title}: {name}: {_amount(trial)}, {scaling}{more if clash else ''}{seen.where}"
        )
    elif state == "nothing" and _too_old(seen):
        yield _skipped(seen, _too_old(seen))
    elif state == "nothing" and asked:
        yield _without_effect(seen, trial, next(iter(asked)))
    elif state == "nothing":
        yield _skipped(seen, f"no AMP variable is set, and {name} would do nothing here")
    else:
        why = trial.reason or _UNTOLD.get(state, state)
        yield Unjudged("could-not-run", f"{seen.title}, {name}: {why}", seen.subjects)


def _ignored(seen: Seen, words: SystemTrial, names: list[str]) -> Finding:
    values = [f"{name}={value}" for name, value in _asked(seen).items() if name in names]
    return Finding(
        "fail",
        f"{', '.join(values)} does nothing in {seen.title}: this build does not know the name, and "
        "computes in 32 bits.",
        [subject for name in names for subject in about("variable", name)],
        seen.evidence(words),
        _in_program(seen, names),
        headline=f"{names[0]} is set, and {seen.title} does not know it",
    )


def _without_effect(seen: Seen, trial: SystemTrial, name: str) -> Finding:
    return Finding(
        "fail",
        f"{name} is set, {seen.title} knows the name, and it has no effect: the step stays in 32 bits.",
        about("variable", name),
        [*seen.evidence(trial), *seen.logged("has no effect")],
        _in_program(seen, [name]),
        headline=f"{name} is set and has no effect in {seen.title}",
    )


def _overruled(seen: Seen) -> Finding | None:
    values = _asked(seen)
    if not is_true(values.get(_ALL)) or not values.get(_REWRITE) or is_true(values[_REWRITE]):
        return None
    return Finding(
        "warn",
        f"{_ALL}={values[_ALL]} does nothing: {_REWRITE}={values[_REWRITE]} is set as well, and wins.",
        about("variable", _REWRITE),
        seen.evidence(seen.trial("variables")),
        Remedy("Leave one of them.", [f"unset {_REWRITE}"]),
        headline=f"{_ALL} is overruled by {_REWRITE}={values[_REWRITE]}",
    )


def _in_program(seen: Seen, names: list[str]) -> Remedy:
    remedy = ask_in_program(parse_version(known(seen.run.framework_version) or ""), names[0])
    more = [f"unset {name}" for name in names[1:]] if remedy.commands else []
    return Remedy(remedy.text, [*remedy.commands, *more])


def _set(seen: Seen) -> list[str]:
    words = seen.trial("variables")
    found = words.evidence.get("set") if words is not None else None
    return found if isinstance(found, list) else []


def _asked(seen: Seen) -> dict[str, str]:
    """AMP's variables that are set, with their values."""
    pairs = [one.partition("=") for one in _set(seen)]
    return {name: value for name, _, value in pairs if name in (_ALL, _REWRITE, _SCALING)}


def _known(seen: Seen) -> list[str]:
    words = seen.trial("variables")
    found = words.evidence.get("known") if words is not None else None
    return found if isinstance(found, list) else []
