"""Checks on XLA: what was to be compiled was compiled, ran, and gives what it gives without XLA."""

from __future__ import annotations

import re

from ...facts.acceleration import SystemTrial
from ..reading import SnapshotView
from ..verdicts import Evidence, Finding, Passed, Verdict, Verdicts, check
from . import xla_causes as causes
from .common import Seen, each_run, failed, number, ok

# A sum of 32 values of 32 bits is off by less than 32 roundings of 2**-24 in either order, and functions such
# as exp and sin by a few more; what is wrong is wrong by far more than this.
_BOUND = 1e-4
_WITHOUT_XLA = re.compile(r"(?i)not (?:built|compiled) with XLA|XLA_\w{1,20} is not registered")


@check("ACC-007", causes=causes.CAUSES)
def xla_compiles(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        name = "jit" if seen.run.framework == "jax" else "jit_compile"
        yield _judged(view, seen, seen.trial(name), clusters=False)

    yield from each_run(view, "xla", judge, absent="the target has neither TensorFlow nor JAX")


@check("ACC-008", causes=causes.CAUSES)
def xla_clusters(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        yield _judged(view, seen, seen.trial("auto-clustering"), clusters=True)

    absent = "the target has no TensorFlow"
    yield from each_run(view, "xla", judge, absent=absent, framework="tensorflow")


def _engaged(trial: SystemTrial, clusters: bool) -> bool:
    """It left a module; in a JAX that does not show any, Python ran less often than it was called."""
    runs = trial.evidence.get("python_runs")
    if isinstance(runs, int):
        return runs < number(trial, "calls")
    return number(trial, "modules") > 0 and (not clusters or number(trial, "clusters") > 0)


def _judged(view: SnapshotView, seen: Seen, trial: SystemTrial | None, clusters: bool) -> Verdict:
    what = "XLA's auto-clustering" if clusters else "XLA"
    control = next(iter(seen.controls), None)
    own = [] if trial is None else [trial.reason]
    lines = [line for line in (*own, seen.run.reason, *seen.run.log) if line]
    if trial is None:
        dead = next((one for one in seen.run.trials if one.outcome == "crashed"), None)
        flag = causes.unknown_flag(view, lines)
        if flag is not None and dead is not None:
            return _finding(seen, dead, what, "ends the process", flag)
        return seen.unjudged(failed(seen, None))
    if trial.outcome == "not-supported":
        return seen.not_applicable(trial.reason)
    if trial.outcome in ("out-of-memory", "timeout"):
        return seen.unjudged(f"{trial.name}: {failed(seen, trial)}")
    if not ok(trial):
        if any(_WITHOUT_XLA.search(line) for line in lines):
            return seen.not_applicable("built without XLA")
        if any(causes.TAKEN.search(line) for line in lines):
            return seen.unjudged(f"{trial.name}: the GPU or its memory is taken")
        cause = causes.cause_of(view, seen, lines) or causes.unknown(
            view, seen, failed(seen, trial)
        )
        verb = "ends the process" if trial.outcome == "crashed" else "compiles nothing"
        return _finding(seen, trial, what, verb, cause)
    if not _engaged(trial, clusters):
        reason = causes.switched_off(view, seen, clusters) or causes.cause_of(view, seen, lines)
        reason = reason or causes.unknown(view, seen, "it gives no reason")
        marked = number(trial, "clusters")
        verb = "marks clusters and compiles none of them" if marked else "compiles nothing"
        return _finding(seen, trial, what, verb, reason)
    if control is None or not ok(control):
        return seen.unjudged(f"what runs without XLA did not run: {failed(seen, control)}")
    if _engaged(control, clusters):
        return seen.unjudged(f"{what} compiles with it switched off, too: there is no control")
    share = trial.evidence.get("difference")
    if share is None:
        return seen.unjudged(f"{trial.name}: its result was not compared with another")
    off_by = share if isinstance(share, (int, float)) else float("nan")
    if not off_by <= _BOUND:
        differs = causes.NotCompiled(causes.DIFFERS, {"off": off_by, "allowed": _BOUND})
        return _finding(seen, trial, what, "computes something else", differs)
    return Passed(_detail(seen, trial))


def _finding(
    seen: Seen, trial: SystemTrial, what: str, verb: str, why: causes.NotCompiled
) -> Finding:
    shown = bool(why.line) and why.line not in trial.reason
    more = [Evidence(f"{seen.path}.log", why.line, "its standard error")] if shown else []
    return seen.found(
        why.cause, trial, *seen.controls, more=more, what=what, verb=verb, **why.params
    )


def _detail(seen: Seen, trial: SystemTrial) -> str:
    """ "TensorFlow 2.15.1: 1 cluster, 1 module, 1 fusion" """
    counts = [
        f"{number(trial, f'{name}s'):.0f} {name}{'' if number(trial, f'{name}s') == 1 else 's'}"
        for name in ("cluster", "module", "fusion")
        if f"{name}s" in trial.evidence and (name != "cluster" or number(trial, "clusters"))
    ]
    return f"{seen.title}: {', '.join(counts or ['traced once'])}{seen.where}"
