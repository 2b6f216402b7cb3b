"""The check on TF-TRT: engines that TensorRT built for a converted graph, and what they give."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...facts.evidence import Evidence
from ...facts.missing import CannotJudge
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ..framework.tensorrt import bring_tensorrt, tensorrt_libraries, tensorrt_wheels
from ..registry import check
from ..target import named, pip_install, python, soname, variables
from .common import NO_FRAMEWORK, Seen, died, each_run, failed, number, runs

# By how much of the largest value a result may be off. The graph's values are not below 0, so that rounding
# is all there is: two layers of 36 and 72 products. FP32 may run as TF32 (operands to 2**-11: 0.2 %); FP16
# may add in 16 bits, too (4 + 108 roundings of 2**-11: 5.5 %); INT8 has 127 steps for a range that
# calibration may cut.
_BOUNDS = {"FP32": 0.005, "FP16": 0.06, "INT8": 0.25}
_NATIVE = re.compile(r"native segment will be used|retrying with native segment")
_REASON = re.compile(r"Reason: ([^\n]{1,160})")
_NO_CHIP = re.compile(r"(?i)(?:target GPU )?SM ?(\d+) is not supported|unsupported SM")
_MISMATCH = re.compile(r"Incompatible (?:linked |loaded )?TensorRT")
_NOT_A_GPU = re.compile(r"device is not a GPU")
_TAKEN = re.compile(
    r"(?i)out of memory|busy or unavailable|DEVICE_UNAVAILABLE|RESOURCE_EXHAUSTED|cudaErrorMemoryAllocation"
)
_NOT_FOUND = "is not found"  # as the collector's file says it
_SWITCHES = ("TF_TRT_OP_DENYLIST", "TF_TRT_OP_BLACKLIST", "TF_TRT_MAX_ALLOWED_ENGINES")


class _NotEngaged(NamedTuple):
    """What a precision came to that did not engage, and the line that says so."""

    says: str
    words: str = ""


@check(
    "ACC-010",
    title="TF-TRT",
    problem="TF-TRT is on and TensorRT runs nothing",
    about=(
        "A graph of two convolutions is converted by TensorFlow's converter for TensorRT in FP32, FP16 and, "
        "with calibration, INT8, and run beside itself unconverted. A precision is engaged where the "
        "converted graph has operations of TensorRT's, these have built engines (one whose engine cannot be "
        "built runs TensorFlow's own code and only logs it), and the result is the graph's to 0.5 % (FP32, "
        "which may run as TF32), 6 % (FP16), 25 % (INT8) of the largest value. A failure for each that is "
        "not; a warning where the TensorRT that is loaded is not the one that it was linked with, or is "
        "installed and not found. TensorFlow is built with it up to 2.17; where nobody installed it, nothing "
        "is wrong."
    ),
    sources=(
        "NVIDIA, Accelerating Inference in TensorFlow with TensorRT: User Guide",
        "tensorflow, tf2tensorrt/kernels/trt_engine_op.cc, trt_engine_resource_ops.cc",
        "tensorflow#21100, #36724",
        "seen with TensorFlow 2.15.1 for CUDA on a machine without a GPU: versions, SIGABRT without TensorRT",
    ),
    follows=(*NO_FRAMEWORK, "FRM-006", "FRM-010"),
    systems=("tf-trt",),
)
def tf_trt(view: SnapshotView) -> Iterator[Verdict]:
    absent = "the target has no TensorFlow"
    lost = [
        finding
        for seen in runs(view, "tf-trt", absent=absent)
        if (finding := _installed_and_lost(view, seen)) is not None
    ]
    if lost:
        yield from lost
        return
    yield from each_run(view, "tf-trt", lambda seen: _judged(view, seen), absent=absent)


def _installed_and_lost(view: SnapshotView, seen: Seen) -> Finding | None:
    """TensorRT is there, and TensorFlow does not find the one that it wants."""
    run = seen.run
    if run.outcome != "not-applicable" or not run.reason.endswith(_NOT_FOUND):
        return None
    there, wheels = tensorrt_libraries(view), tensorrt_wheels(view)
    beside = ", ".join([soname(one) for one in there] or [named(one) for one in wheels])
    linked = _linked(run.reason)
    if not beside or not linked:
        return None
    return Finding(
        "warn",
        f"TensorFlow is linked with TensorRT {linked} and does not find it, though {beside} is installed: "
        "TF-TRT converts nothing.",
        seen.subjects,
        [Evidence(f"{seen.path}.reason", run.reason, "TensorFlow's converter")],
        bring_tensorrt(
            view,
            f"libnvinfer.so.{linked.partition('.')[0]}",
            parse_version(_version(seen)),
            there,
            wheels,
        ),
        headline=f"TF-TRT is off: TensorFlow does not find TensorRT {linked}",
    )


def _version(seen: Seen) -> str:
    return seen.title.rpartition(" ")[2]


def _linked(words: str) -> str:
    told = re.search(r"TensorRT (\d[\d.]*)", words)
    return told[1] if told else ""


def _judged(view: SnapshotView, seen: Seen) -> Iterator[Verdict]:
    control = seen.trial("graph")
    tried = [one for one in seen.run.trials if one.name in _BOUNDS]
    last = died(seen)
    if last is not None and last not in tried and last is not control:
        yield _ends(view, seen, last)
        return
    if control is None or control.outcome != "ok":
        why = f"{seen.title}: the graph itself does not run: {failed(seen, control)}"
        yield Unjudged("could-not-run", why, seen.subjects)
        return
    if number(control, "operations"):
        why = f"{seen.title}: the graph that was not converted has operations of TensorRT's, too"
        yield Unjudged("could-not-run", why, seen.subjects)
        return
    engaged: list[SystemTrial] = []
    refused: dict[str, list[SystemTrial]] = {}
    whys: dict[str, _NotEngaged] = {}
    for trial in tried:
        answer = _answer(seen, trial)
        if answer is None:
            engaged.append(trial)
        elif isinstance(answer, Unjudged):
            yield answer
        else:
            refused.setdefault(answer.says, []).append(trial)
            whys[answer.says] = answer
    for says, trials in refused.items():
        yield _finding(view, seen, trials, whys[says])
    missing = [name for name in _BOUNDS if seen.trial(name) is None]
    if missing:
        why = f"{seen.title}: {', '.join(missing)} not reached: {failed(seen, None)}"
        yield Unjudged("could-not-run", why, seen.subjects)
    if engaged:
        apart = _apart(view, seen)
        yield apart or Passed(_told(seen, engaged))


def _answer(seen: Seen, trial: SystemTrial) -> _NotEngaged | Unjudged | None:
    """What one precision came to: None where it is engaged."""
    words = [trial.reason, *seen.run.log]
    if trial.outcome in ("out-of-memory", "timeout") or (
        trial.outcome != "ok" and any(_TAKEN.search(line) for line in words)
    ):
        why = f"{seen.title}, {trial.name}: {failed(seen, trial)}"
        return Unjudged("could-not-run", why, seen.subjects)
    if trial.outcome == "not-supported":
        why = f"not applicable: {seen.title}, {trial.name}: {trial.reason}"
        return Unjudged("skipped", why, seen.subjects)
    if trial.outcome != "ok":
        if _NOT_A_GPU.search(trial.reason):
            why = f"{seen.title}: TensorFlow does not place the graph on a GPU"
            return Unjudged("could-not-run", why, seen.subjects)
        return _why_failed(seen, trial)
    if not number(trial, "operations"):
        return _NotEngaged("no part of the graph was converted")
    native = next((line for line in seen.run.log if _NATIVE.search(line)), "")
    if "engines" not in trial.evidence:
        if native:
            return _NotEngaged(_fell_back(seen, native), native)
        why = (
            f"{seen.title}, {trial.name}: this version does not tell how many engines it has built"
        )
        return Unjudged("could-not-run", why, seen.subjects)
    if not number(trial, "engines"):
        return _NotEngaged(_fell_back(seen, native), native)
    share = trial.evidence.get("difference")
    if not isinstance(share, (int, float)) or not share <= _BOUNDS[trial.name]:
        return _NotEngaged("its result is not the graph's")
    if native:
        return _NotEngaged(
            "an engine is built and not used: it falls back to TensorFlow's own", native
        )
    return None


def _fell_back(seen: Seen, native: str) -> str:
    chip = next((line for line in seen.run.log if _NO_CHIP.search(line)), "")
    if chip:
        return "no engine is built: this TensorRT does not know this GPU"
    told = _REASON.search(native)
    return f"no engine is built: {told[1].rstrip('.')}" if told else "no engine is built"


def _why_failed(seen: Seen, trial: SystemTrial) -> _NotEngaged:
    if _MISMATCH.search(trial.reason):
        linked, loaded = _versions(seen)
        return _NotEngaged(f"TensorRT {loaded} is loaded, and TensorFlow is linked with {linked}")
    return _NotEngaged(failed(seen, trial).rstrip(".")[:200])


def _versions(seen: Seen) -> tuple[str, str]:
    """(linked, loaded), as far as they were told."""
    found = []
    for name in ("linked", "loaded"):
        trial = seen.trial(f"TensorRT {name}")
        value = None if trial is None else trial.evidence.get("version")
        found.append(value if isinstance(value, str) else "")
    return found[0], found[1]


def _apart(view: SnapshotView, seen: Seen) -> Finding | None:
    """Engines are built, with a TensorRT that TensorFlow was not made for."""
    linked, loaded = (parse_version(one) for one in _versions(seen))
    if linked is None or loaded is None or (linked.major == loaded.major and linked <= loaded):
        return None
    return Finding(
        "warn",
        f"TF-TRT builds engines in {seen.title} with TensorRT {loaded}, and is linked with {linked}: it "
        "needs the same major version, no older than that.",
        seen.subjects,
        seen.evidence(seen.trial("TensorRT linked"), seen.trial("TensorRT loaded")),
        Remedy(
            "Install the TensorRT that it is linked with.",
            [pip_install(view, f"tensorrt=={linked}")],
        ),
        headline=f"TensorRT {loaded} is loaded, and TensorFlow is linked with {linked}",
    )


def _ends(view: SnapshotView, seen: Seen, trial: SystemTrial) -> Verdict:
    if trial.outcome == "timeout":
        why = f"{seen.title}, {trial.name}: {failed(seen, trial)}"
        return Unjudged("could-not-run", why, seen.subjects)
    return Finding(
        "fail",
        f"TensorRT ends {seen.title}'s process when it is asked for its version: {failed(seen, trial)}.",
        seen.subjects,
        seen.evidence(),
        _remedy(view, seen),
        headline="TF-TRT ends the process: its TensorRT does not work",
    )


def _finding(
    view: SnapshotView, seen: Seen, trials: list[SystemTrial], why: _NotEngaged
) -> Finding:
    precisions = ", ".join(one.name for one in trials)
    wrong = why.says.startswith("its result")
    says = f"{why.says} (off by {_shares(trials)})" if wrong else why.says
    verb = "computes something else" if wrong else "runs nothing in TensorRT"
    evidence = seen.evidence(*trials, *seen.controls)
    if why.words:
        evidence.append(Evidence(f"{seen.path}.log", why.words, "its standard error"))
    switch = _switch(view)
    if switch and "no part" in why.says:
        says = f"{says} ({switch} is set)"
    return Finding(
        "fail",
        f"TF-TRT in {seen.title} {verb} in {precisions}: {says}.",
        seen.subjects,
        evidence,
        _remedy(view, seen, switch if "no part" in why.says else ""),
        headline=f"TF-TRT is on and {verb} ({precisions}): {says}",
    )


def _shares(trials: list[SystemTrial]) -> str:
    """ "31 % of the largest value, where 6 % is what rounding explains", of the first."""
    allowed = _BOUNDS[trials[0].name]
    share = trials[0].evidence.get("difference")
    told = f"{share:.2g}" if isinstance(share, (int, float)) else "what is no number"
    return f"{told} of the largest value, where {allowed:g} is what rounding explains"


def _switch(view: SnapshotView) -> str:
    try:
        given = variables(view)
    except CannotJudge:
        return ""
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
        "Ask it again with all that TensorRT has to say, and see whether this TensorRT supports the GPU.",
        [f"TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=trt_logger=2 {python(view)} -c 'import {module}'"],
    )


def _told(seen: Seen, engaged: list[SystemTrial]) -> str:
    """ "TensorFlow 2.15.1: FP32, FP16, INT8; 1 engine each; TensorRT 8.6.1"."""
    linked, loaded = _versions(seen)
    parts = [
        f"{one.name} ({number(one, 'engines'):.0f} engine{'s' if number(one, 'engines') > 1 else ''}, off by "
        f"{number(one, 'difference'):.2g})"
        for one in engaged
    ]
    version = f"TensorRT {loaded}" + (f", linked with {linked}" if linked != loaded else "")
    return f"{seen.title}: {', '.join(parts)}; {version}"
