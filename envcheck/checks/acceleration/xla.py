"""Checks on XLA: what was to be compiled was compiled, ran, and gives what it gives without XLA."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Unjudged, Verdict
from ..registry import check
from .common import NO_IMPORT, Seen, each_run, failed, number
from .xla_causes import (
    CAUSES,
    DIFFERS,
    NO_CHIP,
    SWITCHES_OFF,
    TAKEN,
    NotCompiled,
    cause_of,
    compilers,
    everywhere,
    no_reason,
    switched_off,
    unknown_cause,
    unknown_flag,
    version_of_ptxas,
)

# A sum of 32 values of 32 bits is off by less than 32 roundings of 2**-24 in either order, and functions such
# as exp and sin by a few more; what is wrong is wrong by far more than this.
_BOUND = 1e-4
_WITHOUT_XLA = re.compile(r"(?i)not (?:built|compiled) with XLA|XLA_\w{1,20} is not registered")


@check(
    "ACC-007",
    title="XLA",
    causes=CAUSES,
    about=(
        "A small function is compiled by XLA, as tf.function(jit_compile=True), TensorFlow 1's "
        "tf.xla.experimental.compile or jax.jit do it, and run beside itself uncompiled. It is engaged where "
        "XLA wrote down a module that it compiled (in JAX: where Python runs once for two calls), without "
        "XLA none, and both give the same to 1 in 10,000. A failure where nothing is compiled, where "
        "compiling stops with an error or ends the process, or where the results differ; the cause is looked "
        "for in what XLA logs, in ptxas and libdevice, and in the variables that it reads."
    ),
    sources=(
        "jax.disable_jit, tf.function and XLA's debug options in their documentation",
        "tensorflow#58681, #35423; jax#25344, #6799; openxla/xla#5932; tensorflow/serving#1821",
    ),
    follows=(*NO_IMPORT, "FRM-008", "FRM-009"),
    systems=("xla",),
)
def xla_compiles(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        name = "jit" if seen.run.framework == "jax" else "jit_compile"
        yield _judged(view, seen, seen.trial(name), "XLA", _compiled, None)

    yield from each_run(view, "xla", judge, absent="the target has neither TensorFlow nor JAX")


@check(
    "ACC-008",
    title="XLA clustering",
    causes=CAUSES,
    about=(
        "A small graph is run with TensorFlow's auto-clustering on (tf.config.optimizer.set_jit, "
        "global_jit_level) and off. It is engaged where the graph that ran has clusters (_XlaCompile, "
        "_XlaRun), XLA compiled a module of them, and neither is there with it off. TensorFlow clusters for "
        "GPUs alone unless TF_XLA_FLAGS holds --tf_xla_cpu_global_jit, with which it is run where there is "
        "no GPU. A failure where there is no cluster, no module, or another result: "
        "TF_XLA_FLAGS=--tf_xla_auto_jit=-1, a smallest cluster size that no graph has, or what keeps XLA "
        "from compiling at all."
    ),
    sources=(
        "TensorFlow's documentation of XLA and of TF_XLA_FLAGS",
        "seen with TensorFlow 1.15.5, 2.15.1 and 2.21.0 on a CPU",
    ),
    follows=(*NO_IMPORT, "FRM-008", "FRM-009", "ACC-007"),
    systems=("xla",),
)
def xla_clusters(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        trial = seen.trial("auto-clustering")
        yield _judged(view, seen, trial, "XLA's auto-clustering", _clustered, SWITCHES_OFF)

    yield from each_run(
        view, "xla", judge, absent="the target has no TensorFlow", framework="tensorflow"
    )


def _compiled(trial: SystemTrial) -> bool:
    """It left a module; in a JAX that does not show any, Python ran less often than it was called."""
    runs = trial.evidence.get("python_runs")
    if isinstance(runs, int):
        return runs < number(trial, "calls")
    return number(trial, "modules") > 0


def _clustered(trial: SystemTrial) -> bool:
    return number(trial, "clusters") > 0 and number(trial, "modules") > 0


def _judged(
    view: SnapshotView,
    seen: Seen,
    trial: SystemTrial | None,
    what: str,
    engaged: Callable[[SystemTrial], bool],
    off: re.Pattern[str] | None,
) -> Verdict:
    """off: what in TF_XLA_FLAGS switches it off."""
    control = next(iter(seen.controls), None)
    # What may show why: the trial's own reason first.
    own = [] if trial is None else [trial.reason]
    lines = [line for line in (*own, seen.run.reason, *seen.run.log) if line]
    if trial is None or trial.outcome in ("out-of-memory", "timeout", "not-supported"):
        return _without(view, seen, trial, what, lines)
    name = f"{trial.name}: "
    if trial.outcome != "ok":
        if any(_WITHOUT_XLA.search(line) for line in lines):
            return Unjudged(
                "skipped", f"not applicable: {seen.title} is built without XLA", seen.subjects
            )
        if any(TAKEN.search(line) for line in lines):
            return seen.unjudged(name + "the GPU or its memory is taken")
        cause = cause_of(view, seen, lines) or unknown_cause(view, seen, trial)
        verb = "ends the process" if trial.outcome == "crashed" else "compiles nothing"
        return _finding(seen, trial, what, verb, cause)
    if not engaged(trial):
        reason = switched_off(view, seen, off) or cause_of(view, seen, lines)
        marked = number(trial, "clusters")
        verb = "marks clusters and compiles none of them" if marked else "compiles nothing"
        return _finding(seen, trial, what, verb, reason or no_reason(view, seen))
    if control is None or control.outcome != "ok":
        return seen.unjudged(f"what runs without XLA did not run: {failed(seen, control)}")
    if engaged(control):
        return seen.unjudged(everywhere(view, what))
    share = trial.evidence.get("difference")
    if share is None:
        return seen.unjudged(name + "its result was not compared with another")
    off_by = share if isinstance(share, (int, float)) else float("nan")
    if not off_by <= _BOUND:
        differs = NotCompiled(DIFFERS, "", {"off": off_by, "allowed": _BOUND})
        return _finding(seen, trial, what, "computes something else", differs)
    return Passed(_detail(view, seen, trial, lines))


def _without(
    view: SnapshotView, seen: Seen, trial: SystemTrial | None, what: str, lines: list[str]
) -> Verdict:
    """Of a trial that was not reached, took too long, or cannot be made in this version."""
    if trial is not None and trial.outcome == "not-supported":
        return seen.not_applicable(trial.reason)
    died = next((one for one in seen.run.trials if one.outcome == "crashed"), None)
    cause = unknown_flag(view, lines) if trial is None and died is not None else None
    if cause is not None and died is not None:
        return _finding(seen, died, what, "ends the process", cause)
    name = f"{trial.name}: " if trial is not None else ""
    return seen.unjudged(f"{name}{failed(seen, trial)}")


def _finding(seen: Seen, trial: SystemTrial, what: str, verb: str, why: NotCompiled) -> Finding:
    more = []
    if why.line and why.line not in trial.reason:
        more.append(Evidence(f"{seen.path}.log", why.line, "its standard error"))
    details = {"what": what, "verb": verb, **why.details}
    return seen.found(why.cause, trial, *seen.controls, more=more, **details)


def _detail(view: SnapshotView, seen: Seen, trial: SystemTrial, lines: list[str]) -> str:
    """ "TensorFlow 2.15.1: 1 cluster, 1 module, 1 fusion; ptxas 12.2.140 (/usr/local/cuda/bin/ptxas)"."""
    names = ("cluster", "module", "fusion")
    counts = [
        f"{number(trial, f'{name}s'):.0f} {name}{'' if number(trial, f'{name}s') == 1 else 's'}"
        for name in names
        if f"{name}s" in trial.evidence and (name != "cluster" or number(trial, "clusters"))
    ]
    if "python_runs" in trial.evidence and not counts:
        counts = ["traced once"]
    said = f"{seen.title}: {', '.join(counts)}{seen.where}"
    if seen.run.device == "cpu":
        return said
    tools = compilers(view, seen)[1]
    if tools is not None:
        taken = [
            f"{one.kind} {known(one.version) or ''} ({one.path})".replace("  ", " ")
            for one in (*tools.ptxas[:1], *tools.libdevice[:1])
        ]
        said += "".join(f"; {one}" for one in taken)
    by_driver = next((told for line in lines if (told := NO_CHIP.search(line))), None)
    if by_driver is not None:
        said += f"; left to the driver's compiler, {version_of_ptxas(tools)} does not know this GPU"
    return said
