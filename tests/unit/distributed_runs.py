"""Made-up SystemRuns of training on several devices and processes, and their judgement."""

from __future__ import annotations

from typing import Any

import system_runs
from system_runs import trial

from envcheck.facts.acceleration import SystemRun, SystemTrial
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


def well(system: str, **more: Any) -> SystemTrial:
    """The system's trial, well unless evidence says otherwise; None takes a piece of it away."""
    name, evidence = TRIALS[system]
    return trial(name, **(evidence | more))


def control(system: str, **more: Any) -> SystemTrial:
    name, evidence = CONTROLS[system]
    return trial(name, control=True, **(evidence | more))


def bad(name: str, reason: str, outcome: Any = "error", **evidence: Any) -> SystemTrial:
    held = name in {one for one, _evidence in CONTROLS.values()}
    return trial(name, outcome, reason, held, **evidence)


def run(system: str, *trials: SystemTrial, **more: Any) -> SystemRun:
    return system_runs.run(system, *trials, **({"device": "cpu"} | more))


def judged(system: str, *trials: SystemTrial, **more: Any) -> CheckResult:
    return system_runs.result(CODES[system], run(system, *trials, **more))
