"""The check on AMP's variables: whether this TensorFlow knows them, and does what they say."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..environment.mixed_precision import ask_in_program
from ..environment.speed import is_true
from ..registry import check
from .amp_graph_seen import (
    ABSENT,
    ALL,
    REWRITE,
    SYSTEM,
    UNTOLD,
    amount_of,
    asked_for,
    state_of,
    why_too_old,
    words_known,
    would_clash,
)
from .common import NO_IMPORT, Seen, each_run, failed

UNKNOWN = Cause(
    "unknown-variable",
    "fail",
    headline="{name} is set, and {title} does not know it",
    sentence="{settings} does nothing in {title}: this build does not know it, and computes in 32 bits.",
)
NO_EFFECT = Cause(
    "variable-without-effect",
    "fail",
    headline="{name} is set and has no effect in {title}",
    sentence="{name} is set, {title} knows the name, and it has no effect: the step stays in 32 bits.",
)
OVERRULED = Cause(
    "variable-overruled",
    "warn",
    headline="{name} is overruled by {other}",
    sentence="{setting} does nothing: {other} is set as well, and wins.",
    remedy="Leave one of them.",
    commands=[f"unset {REWRITE}"],
)


@check(
    "ACC-002",
    title="AMP by variable",
    causes=[UNKNOWN, NO_EFFECT, OVERRULED],
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
    follows=NO_IMPORT,
    systems=(SYSTEM,),
)
def variables_are_heeded(view: SnapshotView) -> Iterator[Verdict]:
    yield from each_run(view, SYSTEM, _variables, absent=ABSENT)


def _variables(seen: Seen) -> Iterator[Verdict]:
    words = seen.trial("variables")
    if words is None or words.outcome != "ok":
        yield seen.unjudged(failed(seen, words))
        return
    asked = {name: value for name, value in asked_for(seen).items() if is_true(value)}
    heeded = words_known(seen)
    unknown = [name for name in asked if name not in heeded]
    if unknown and not words.evidence.get("rewrite_found"):
        yield seen.unjudged("the library that has the rewrite was not found")
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
        yield seen.not_applicable("no AMP variable is set, and this build knows none")
        return
    yield from _tried(seen, words, asked)


def _tried(seen: Seen, words: SystemTrial, asked: dict[str, str]) -> Iterator[Verdict]:
    """What a process did in which the variable alone asks for AMP."""
    trial = seen.trial("variable")
    if words.evidence.get("no_effect") is True:
        yield seen.not_applicable(
            "no AMP variable is set, and this build says that they have no effect"
        )
        return
    if trial is None:
        why = "no GPU to see it on" if seen.run.device == "cpu" else failed(seen, None)
        yield seen.unjudged(why)
        return
    told = trial.evidence.get("asked")
    name = ", ".join(told) if isinstance(told, list) else ALL
    state = state_of(seen, trial, seen.trial("session off"))
    if state == "engaged":
        scaled = trial.evidence.get("loss_scaling") is True
        scaling = "with loss scaling" if scaled else "without loss scaling of its own"
        clash = asked and would_clash(seen, seen.trial("session"))
        more = "; a program that wraps its optimizer as well stops with a RuntimeError"
        yield Passed(
            f"{seen.title}: {name}: {amount_of(trial)}, {scaling}{more if clash else ''}{seen.where}"
        )
    elif state == "nothing" and why_too_old(seen):
        yield seen.not_applicable(why_too_old(seen))
    elif state == "nothing" and asked:
        yield _without_effect(seen, trial, next(iter(asked)))
    elif state == "nothing":
        yield seen.not_applicable(f"no AMP variable is set, and {name} would do nothing here")
    else:
        why = trial.reason or UNTOLD.get(state, state)
        yield seen.unjudged(f"{name}: {why}")


def _ignored(seen: Seen, variables: SystemTrial, names: list[str]) -> Finding:
    values = [f"{name}={value}" for name, value in asked_for(seen).items() if name in names]
    return UNKNOWN.found(
        [subject for name in names for subject in about("variable", name)],
        seen.evidence(variables),
        advice=_in_program(seen, names),
        name=names[0],
        settings=", ".join(values),
        title=seen.title,
    )


def _without_effect(seen: Seen, trial: SystemTrial, name: str) -> Finding:
    evidence = [*seen.evidence(trial), *seen.logged("has no effect")]
    advice = _in_program(seen, [name])
    subjects = about("variable", name)
    return NO_EFFECT.found(subjects, evidence, advice=advice, name=name, title=seen.title)


def _overruled(seen: Seen) -> Finding | None:
    values = asked_for(seen)
    if not is_true(values.get(ALL)) or not values.get(REWRITE) or is_true(values[REWRITE]):
        return None
    return OVERRULED.found(
        about("variable", REWRITE),
        seen.evidence(seen.trial("variables")),
        name=ALL,
        setting=f"{ALL}={values[ALL]}",
        other=f"{REWRITE}={values[REWRITE]}",
    )


def _in_program(seen: Seen, names: list[str]) -> Remedy:
    remedy = ask_in_program(parse_version(known(seen.run.framework_version) or ""), names[0])
    more = [f"unset {name}" for name in names[1:]] if remedy.commands else []
    return Remedy(remedy.text, [*remedy.commands, *more])
