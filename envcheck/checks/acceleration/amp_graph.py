"""The check on AMP by graph rewrite in TensorFlow: half types in the graph that ran."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.versions import parse_version
from ...facts.base import known
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.commands import fill_in
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..environment.mixed_precision import KERAS_HAS_IT
from ..registry import check
from .amp_graph_seen import (
    ABSENT,
    SYSTEM,
    UNTOLD,
    WAYS,
    Way,
    amount_of,
    cannot_tell,
    state_of,
    way_of,
    why_too_old,
    words_set,
    would_clash,
)
from .common import NO_IMPORT, Seen, each_run, failed, number

_SWITCHES = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"

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
    "AMP's loss scale in {title} lets an overflow into the weights, which are no numbers any more.",
    _FIXED,
)
STOPS = Cause(
    "stops-after-overflow",
    "fail",
    "AMP's loss scale in {title} stops learning after an overflow",
    "AMP's loss scale in {title} takes no step any more after an overflow.",
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


@check(
    "ACC-001",
    title="AMP, graph rewrite",
    causes=[NOTHING, STEP_FAILS, SPOILS, STOPS, STAYS],
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
    follows=NO_IMPORT,
    systems=(SYSTEM,),
)
def graph_is_rewritten(view: SnapshotView) -> Iterator[Verdict]:
    yield from each_run(view, SYSTEM, _rewrite, absent=ABSENT)


def _rewrite(seen: Seen) -> Iterator[Verdict]:
    broken, scaling = _loss_scaling(seen)
    yield from broken
    ways = [way_of(seen, name) for name in WAYS if seen.trial(name) is not None]
    engaged = [way for way in ways if way.state == "engaged"]
    if engaged:
        told = "; ".join(dict.fromkeys(f"{amount_of(way.trial)} ({way.title})" for way in engaged))
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
    too_old = why_too_old(seen)
    nothing = by_state.get("nothing", [])
    if nothing and too_old and not engaged:
        yield seen.not_applicable(too_old)
        return
    if nothing:
        yield _nothing(seen, nothing)
    for way in by_state.get("failed", []):
        yield _failed(seen, way)
    for state, words in UNTOLD.items():
        for way in by_state.get(state, []):
            yield cannot_tell(seen, way, words)
    absent = by_state.get("absent", [])
    if absent and len(absent) == len(ways):
        yield seen.not_applicable("; ".join(dict.fromkeys(way.trial.reason for way in absent)))
    elif not ways:
        yield seen.unjudged(failed(seen, None))


def _nothing(seen: Seen, ways: list[Way]) -> Finding:
    titles = " and ".join(way.title for way in ways)
    amount = number(ways[0].trial, "convolutions")
    switches = [one for one in words_set(seen) if one.startswith(_SWITCHES)]
    because = f" {', '.join(switches)} is set, which changes what it takes." if switches else ""
    return seen.found(
        NOTHING,
        *(way.trial for way in ways),
        more=seen.logged("auto_mixed_precision"),
        advice=_remedy(seen, [one.partition("=")[0] for one in switches]),
        ways=titles,
        convolutions=amount,
        because=because,
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
        "Let the rewrite say why.",
        [
            "TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=auto_mixed_precision=2 python "
            + fill_in("SCRIPT", "your program")
        ],
    )


def _failed(seen: Seen, way: Way) -> Verdict:
    if would_clash(seen, way.trial):
        words = "by a variable already, which excludes wrapping the optimizer (ACC-002)"
        return seen.not_applicable(f"AMP is asked for {words}")
    if way.trial.outcome != "error":
        return seen.unjudged(f"{way.title}: {failed(seen, way.trial)}")
    why, advice = failed(seen, way.trial), _remedy(seen, [])
    return seen.found(STEP_FAILS, way.trial, advice=advice, way=way.title, why=why)


def _without_gpu(seen: Seen, ways: list[Way], scaling: str) -> Verdict:
    """On a CPU: the rewrite for bfloat16 that ran, or what keeps it from running."""
    bfloat16 = seen.trial("bfloat16")
    if bfloat16 is not None:
        way = way_of(seen, "function", bfloat16)
        if way.state == "engaged":
            told = f"{seen.title}: {amount_of(bfloat16)}{seen.where}"
            return Passed("; ".join(filter(None, (told, scaling))))
    for way in ways:
        if way.state in ("hidden", "both"):
            return cannot_tell(seen, way, UNTOLD[way.state])
    if ways and all(way.state == "absent" for way in ways):
        return seen.not_applicable(ways[0].trial.reason)
    made_up = seen.trial("made-up GPU")
    rewrites = ""
    if made_up is not None and state_of(seen, made_up, seen.trial("made-up GPU off")) == "engaged":
        rewrites = f"; for a made-up one it would put {amount_of(made_up)}"
    words = seen.trial("variables")
    if words is not None and words.evidence.get("cuda_build") is False:
        return seen.not_applicable(f"built without CUDA, and the rewrite is for GPUs{rewrites}")
    return seen.unjudged(f"no GPU, and the rewrite wants one{rewrites}")


def _loss_scaling(seen: Seen) -> tuple[list[Finding], str]:
    """(what is wrong with it, what it did in words)."""
    trial, control = seen.trial("loss scale"), seen.trial("loss scale off")
    if trial is None or trial.outcome != "ok" or control is None or control.outcome != "ok":
        return [], ""
    if control.evidence.get("weights_changed") is not True:
        return [], ""  # it was no overflow
    before, after = number(trial, "scale_before"), number(trial, "scale_after")
    cause = None
    if trial.evidence.get("weights_changed") is True:
        cause = SPOILS
    elif trial.evidence.get("next_step_changed") is False:
        cause = STOPS
    elif before and not 0 < after < before:
        cause = STAYS
    if cause is not None:
        return [seen.found(cause, trial, control, before=before)], ""
    if not before:
        return [], ""
    return (
        [],
        f"at an overflow the loss scale falls from {before:.9g} to {after:.10g} and the weights stay",
    )
