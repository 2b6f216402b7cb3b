"""The check on TF-TRT: engines that TensorRT built for a converted graph, and what they give."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...facts.acceleration import SystemTrial
from ..declared import declared_causes
from ..reading import SnapshotView
from ..target import pip_install, python, variables_if_known
from ..verdicts import Cause, Evidence, Finding, Passed, Remedy, Unjudged, Verdicts, check
from .common import Seen, died, each_run, failed, number, ok, text

CAUSE = declared_causes(__name__)

# By how much of the largest value a result may be off. The graph's values are not below 0, so that rounding
# is all there is: two layers of 36 and 72 products. FP32 may run as TF32 (operands to 2**-11: 0.2 %); FP16
# may add in 16 bits, too (4 + 108 roundings of 2**-11: 5.5 %).
_BOUNDS = {"FP32": 0.005, "FP16": 0.06}
_NATIVE = re.compile(r"native segment will be used|retrying with native segment")
_REASON = re.compile(r"Reason: ([^\n]{1,160})")
_NO_CHIP = re.compile(r"(?i)(?:target GPU )?SM ?(\d+) is not supported|unsupported SM")
_INCOMPATIBLE = re.compile(r"Incompatible (?:linked |loaded )?TensorRT")
_TAKEN = re.compile(
    r"(?i)out of memory|busy or unavailable|DEVICE_UNAVAILABLE|RESOURCE_EXHAUSTED|cudaErrorMemoryAllocation"
)
_SWITCHES = ("TF_TRT_OP_DENYLIST", "TF_TRT_OP_BLACKLIST", "TF_TRT_MAX_ALLOWED_ENGINES")


class _NotEngaged(NamedTuple):
    """Why a precision did not engage. line: of the log, that shows it."""

    cause: Cause
    why: str = ""
    line: str = ""


@check("ACC-010")
def tf_trt(view: SnapshotView) -> Verdicts:
    absent = "the target has no TensorFlow"
    yield from each_run(view, "tf-trt", lambda seen: _judged(view, seen), absent=absent)


def _judged(view: SnapshotView, seen: Seen) -> Verdicts:
    control, last = seen.trial("graph"), died(seen)
    tried = [one for one in seen.run.trials if one.name in _BOUNDS]
    if last is not None and last not in (*tried, control):  # asked for TensorRT's version
        why = failed(seen, last)
        if last.outcome == "timeout":
            yield seen.unjudged(f"{last.name}: {why}")
        else:
            yield _finding(
                view,
                seen,
                [],
                _NotEngaged(CAUSE["conversion-fails"], f"{last.name}: {why.rstrip('.')}"),
            )
        return
    if control is None or not ok(control):
        yield seen.unjudged(f"the graph itself does not run: {failed(seen, control)}")
        return
    if number(control, "operations"):
        yield seen.unjudged("the graph that was not converted has operations of TensorRT's, too")
        return
    engaged: list[SystemTrial] = []
    refused: dict[_NotEngaged, list[SystemTrial]] = {}
    for trial in tried:
        answer = _answer(view, seen, trial)
        if answer is None:
            engaged.append(trial)
        elif isinstance(answer, Unjudged):
            yield answer
        else:
            refused.setdefault(answer, []).append(trial)
    for why_not, trials in refused.items():
        yield _finding(view, seen, trials, why_not)
    missing = [name for name in _BOUNDS if seen.trial(name) is None]
    if missing:
        yield seen.unjudged(f"{', '.join(missing)} not reached: {failed(seen, None)}")
    if engaged:
        yield _engaged(seen, engaged)


def _answer(view: SnapshotView, seen: Seen, trial: SystemTrial) -> _NotEngaged | Unjudged | None:
    """What one precision came to: None where it is engaged."""
    why = failed(seen, trial)
    if trial.outcome == "not-supported":
        return seen.not_applicable(f"{trial.name}: {trial.reason}")
    if not ok(trial):
        taken = any(_TAKEN.search(line) for line in (trial.reason, *seen.run.log))
        if taken or trial.outcome in ("out-of-memory", "timeout"):
            return seen.unjudged(f"{trial.name}: {why}")
        if "device is not a GPU" in trial.reason:
            return seen.unjudged("TensorFlow does not place the graph on a GPU")
        if _INCOMPATIBLE.search(trial.reason):
            return _NotEngaged(CAUSE["wrong-tensorrt"])
        return _NotEngaged(CAUSE["conversion-fails"], why.rstrip(".")[:200])
    if not number(trial, "operations"):
        switch = _switch(view)
        return _NotEngaged(CAUSE["nothing-converted"], f" ({switch} is set)" if switch else "")
    native = next((line for line in seen.run.log if _NATIVE.search(line)), "")
    if "engines" not in trial.evidence and not native:
        lacking = "this version does not report how many engines it built"
        return seen.unjudged(f"{trial.name}: {lacking}")
    if not number(trial, "engines"):
        reason = _REASON.search(native)
        fell_back = f": {reason[1].rstrip('.')}" if reason else ""
        if any(_NO_CHIP.search(line) for line in seen.run.log):
            fell_back = ": this TensorRT does not know this GPU"
        return _NotEngaged(CAUSE["no-engine"], fell_back, native)
    share = trial.evidence.get("difference")
    if not isinstance(share, (int, float)) or not share <= _BOUNDS[trial.name]:
        return _NotEngaged(CAUSE["wrong-result"])
    unused = " that is used: TensorFlow's own code runs in its place"
    return _NotEngaged(CAUSE["no-engine"], unused, native) if native else None


def _versions(seen: Seen) -> tuple[str, str]:
    """(linked, loaded), as far as they are known."""
    linked, loaded = seen.trial("TensorRT linked"), seen.trial("TensorRT loaded")
    return text(linked, "version"), text(loaded, "version")


def _engaged(seen: Seen, engaged: list[SystemTrial]) -> Passed:
    linked, loaded = _versions(seen)
    parts = []
    for one in engaged:
        engines = f"{number(one, 'engines'):.0f} engine{'s' if number(one, 'engines') > 1 else ''}"
        parts.append(f"{one.name} ({engines}, off by {number(one, 'difference'):.2g})")
    version = f"TensorRT {loaded}" + (f", linked with {linked}" if linked != loaded else "")
    return Passed(f"{seen.title}: {', '.join(parts)}; {version}")


def _finding(
    view: SnapshotView, seen: Seen, trials: list[SystemTrial], found: _NotEngaged
) -> Finding:
    linked, loaded = _versions(seen)
    share = trials[0].evidence.get("difference") if trials else None
    shown = [*trials, *seen.controls] if trials else seen.run.trials
    line = [Evidence(f"{seen.path}.log", found.line, "its standard error")] if found.line else []
    return seen.found(
        found.cause,
        *shown,
        more=line,
        advice=_remedy(
            view, seen, _switch(view) if found.cause is CAUSE["nothing-converted"] else ""
        ),
        precisions=", ".join(one.name for one in trials) or "every precision",
        why=found.why,
        linked=linked,
        loaded=loaded,
        off=f"{share:.2g}" if isinstance(share, (int, float)) else "what is no number",
        allowed=_BOUNDS[trials[0].name] if trials else 0,
    )


def _switch(view: SnapshotView) -> str:
    given = variables_if_known(view)
    return next((f"{name}={given[name]}" for name in _SWITCHES if given.get(name)), "")


def _remedy(view: SnapshotView, seen: Seen, switch: str = "") -> Remedy:
    if switch:
        return Remedy("Unset it.", [f"unset {switch.partition('=')[0]}"])
    linked, loaded = _versions(seen)
    if linked and loaded != linked:
        return Remedy(
            "Install the TensorRT that TensorFlow is linked with, and take others off LD_LIBRARY_PATH.",
            [pip_install(view, f"tensorrt=={linked}"), "echo $LD_LIBRARY_PATH"],
        )
    module = "tensorflow.python.compiler.tensorrt.trt_convert"
    return Remedy(
        "Run it again with all of TensorRT's log lines, and check whether this TensorRT supports the GPU.",
        [f"TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=trt_logger=2 {python(view)} -c 'import {module}'"],
    )
