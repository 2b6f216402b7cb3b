"""Made-up SystemRuns of training on several devices and processes, and their judgement."""

from __future__ import annotations

from typing import Any

from targets import good_snapshot, judge, replace

from envcheck.facts.acceleration import Acceleration, SystemRun, SystemTrial
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult

CODES = {
    "horovod": "ACC-014",
    "mirrored": "ACC-015",
    "multiworker": "ACC-016",
}
_SUM: dict[str, Any] = {"sum": 3.0, "expected": 3.0}
_ALONE: dict[str, Any] = {"sum": 1.0, "expected": 3.0, "replicas": 1}
# What each system's trial leaves behind where all is well, and its control.
TRIALS: dict[str, tuple[str, dict[str, Any]]] = {
    "horovod": (
        "ranks",
        {
            **_SUM,
            "ranks": 2,
            "size": 2,
            "wrong": 0,
            "weights": ["-0.5"],
            "step": -0.5,
            "operations": ["GLOO_ALLREDUCE"],
            "nccl": False,
            "version": "0.28.1",
        },
    ),
    "mirrored": (
        "mirrored",
        {
            **_SUM,
            "replicas": 2,
            "wrong": 0,
            "weights": ["3.0"],
            "reduction": "CollectiveAllReduce",
            "implementation": "NCCL",
        },
    ),
    "multiworker": ("workers", {**_SUM, "replicas": 2, "differing": 0, "weights": ["4.0"]}),
}
CONTROLS: dict[str, tuple[str, dict[str, Any]]] = {
    "horovod": ("one rank", {"size": 1, "sum": 1.0}),
    "mirrored": ("OneDeviceStrategy", {"sum": 1.0, "expected": 1.0, "replicas": 1}),
    "multiworker": ("without TF_CONFIG", _ALONE),
}


def made(
    places: dict[str, tuple[str, dict[str, Any]]], system: str, **more: Any
) -> dict[str, SystemTrial]:
    name, evidence = places[system]
    found = {key: value for key, value in {**evidence, **more}.items() if value is not None}
    return {name: SystemTrial(name=name, outcome="ok", evidence=found)}


def well(system: str, **more: Any) -> SystemTrial:
    """The system's trial, well unless evidence says otherwise; None takes a piece of it away."""
    (trial,) = made(TRIALS, system, **more).values()
    return trial


def control(system: str, **more: Any) -> SystemTrial:
    (trial,) = made(CONTROLS, system, **more).values()
    return SystemTrial(name=trial.name, control=True, outcome="ok", evidence=trial.evidence)


def bad(name: str, reason: str, outcome: Any = "error", **evidence: Any) -> SystemTrial:
    held = name in {one for one, _evidence in CONTROLS.values()}
    return SystemTrial(name=name, control=held, outcome=outcome, reason=reason, evidence=evidence)


def seen(*runs: SystemRun, **probes: Any) -> Snapshot:
    snap = good_snapshot(acceleration=Acceleration(systems=[*CODES], runs=list(runs)), **probes)
    return replace(snap, "machine", acceleration=Acceleration(systems=[]))


def run(system: str, *trials: SystemTrial, **more: Any) -> SystemRun:
    given: dict[str, Any] = {
        "framework": "tensorflow",
        "framework_version": "2.15.1",
        "device": "cpu",
        "outcome": "ok",
    }
    return SystemRun(system=system, trials=list(trials), **{**given, **more})


def judged(system: str, *trials: SystemTrial, **more: Any) -> CheckResult:
    return judge(seen(run(system, *trials, **more)), CODES[system], "acceleration")
