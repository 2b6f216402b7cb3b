"""Made-up SystemRuns of AMP by graph rewrite, and their judgement."""

from __future__ import annotations

from typing import Any

from targets import good_snapshot, judge, replace

from envcheck.facts.acceleration import Acceleration, SystemRun, SystemTrial
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult

SYSTEM = "amp-graph"


def trial(name: str, control: bool = False, **evidence: Any) -> SystemTrial:
    return SystemTrial(name=name, control=control, outcome="ok", evidence=evidence)


def bad(name: str, outcome: Any, reason: str, control: bool = False) -> SystemTrial:
    return SystemTrial(name=name, control=control, outcome=outcome, reason=reason)


def step(name: str, half: int = 0, control: bool = False, **more: Any) -> SystemTrial:
    """A step of five convolutions and three products, so many convolutions of them in half."""
    evidence = {
        "casts": 17 if half else 0,
        "convolutions": 5,
        "half_convolutions": half,
        "products": 3,
        "half_products": 3 if half else 0,
        "types": ["float16"] if half else [],
        "xla_nodes": 0,
        "places": ["GPU"],
    }
    return trial(name, control, **{**evidence, **more})


def words(known: tuple[str, ...] = (), are_set: tuple[str, ...] = (), **more: Any) -> SystemTrial:
    """What the build knows, and what is set."""
    evidence: dict[str, Any] = {"rewrite_found": True, "no_effect": False, "cuda_build": True}
    evidence.update(known=list(known), set=list(are_set), compute_capability="9.0")
    return trial("variables", **{**evidence, **more})


def falls(**more: Any) -> tuple[SystemTrial, SystemTrial]:
    """A loss scale that does what it should, and the step without it."""
    evidence = {"scale_before": 32768.0, "scale_after": 16384.0}
    changes = {"weights_changed": False, "next_step_changed": True}
    return (
        trial("loss scale", **{**evidence, **changes, **more}),
        trial("loss scale off", True, weights_changed=True, next_step_changed=False),
    )


def sessions(half: int = 5, **more: Any) -> tuple[SystemTrial, SystemTrial]:
    return step("session", half, **more), step("session off", control=True)


def functions(half: int = 5, **more: Any) -> tuple[SystemTrial, SystemTrial]:
    return step("function", half, **more), step("function off", control=True)


def run(*trials: SystemTrial, version: str = "2.15.1", **more: Any) -> SystemRun:
    given: dict[str, Any] = {"device": "gpu", "outcome": "ok", "gpus": ["0000:01:00.0"]}
    return SystemRun(
        system=SYSTEM,
        framework="tensorflow",
        framework_version=version,
        trials=list(trials),
        **{**given, **more},
    )


def seen(*runs: SystemRun, **probes: Any) -> Snapshot:
    snap = good_snapshot(acceleration=Acceleration(systems=[SYSTEM], runs=list(runs)), **probes)
    return replace(snap, "machine", acceleration=Acceleration(systems=[]))


def judged(code: str, *trials: SystemTrial, **more: Any) -> CheckResult:
    return judge(seen(run(*trials, **more)), code, "acceleration")
