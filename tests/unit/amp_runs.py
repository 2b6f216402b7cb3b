"""Made-up SystemRuns of mixed precision: by API and by graph rewrite; and their judgement."""

from __future__ import annotations

from typing import Any

import system_runs
from system_runs import trial

from envcheck.facts.acceleration import SystemRun, SystemTrial
from envcheck.findings.model import CheckResult

KERAS, TORCH, GRAPH = "amp-keras", "amp-torch", "amp-graph"
CODES = {KERAS: "ACC-003", TORCH: "ACC-004", GRAPH: "ACC-001"}
CPU: dict[str, Any] = {"device": "cpu", "gpus": []}
SCALED = {
    "scale": 32768.0,
    "moved_by_step": True,
    "scale_after_step": 32768.0,
    "moved_by_overflow": False,
    "scale_after_overflow": 16384.0,
}


def step(name: str, half: int = 0, control: bool = False, **more: Any) -> SystemTrial:
    """A step of three convolutions and three products, so many of each in 16 bits."""
    evidence = {"convolutions": 3, "convolutions_half": half}
    evidence |= {"products": 3, "products_half": half}
    return trial(name, control=control, **{**evidence, **more})


def keras(half: int = 3, bfloat: int = 3, **more: Any) -> list[SystemTrial]:
    return [
        step("float32", control=True),
        step("mixed_float16", half, **{**SCALED, **more}),
        step("mixed_bfloat16", bfloat),
    ]


def scaler(**more: Any) -> SystemTrial:
    evidence = {"scale": 2.0**40, "scale_after_overflow": 2.0**39, "scale_after_step": 8.0}
    return trial("GradScaler", **{**SCALED, **evidence, **more})


def unscaled(**more: Any) -> SystemTrial:
    return trial(
        "GradScaler off", control=True, **{"moved_by_overflow": True, "scale": 1.0, **more}
    )


def torch(half: int = 3, **more: Any) -> list[SystemTrial]:
    control = step("enabled=False", control=True, asked="float16")
    return [control, step("autocast", half, asked="float16"), unscaled(), scaler(**more)]


def rewritten(name: str, half: int = 0, control: bool = False, **more: Any) -> SystemTrial:
    """A step of five convolutions and three products, so many convolutions of them in half."""
    evidence = {"convolutions": 5, "half_convolutions": half, "products": 3, "xla_nodes": 0}
    evidence["half_products"] = 3 if half else 0
    types = {"types": ["float16"] if half else [], "places": ["GPU"]}
    return trial(name, control=control, **{**evidence, **types, **more})


def variables(*are_set: str) -> SystemTrial:
    return trial("variables", set=list(are_set))


def ways(name: str, half: int = 5, **more: Any) -> tuple[SystemTrial, SystemTrial]:
    """name: "session" or "function"; beside it the same with the rewrite off."""
    return rewritten(name, half, **more), rewritten(f"{name} off", control=True)


def run(system: str, *trials: SystemTrial, **more: Any) -> SystemRun:
    given: dict[str, Any] = {"device": "gpu", "gpus": ["0000:01:00.0"]}
    if system == TORCH:
        given |= {"framework": "torch", "framework_version": "2.4.0"}
    return system_runs.run(system, *trials, **(given | more))


def judged(system: str, *trials: SystemTrial, **more: Any) -> CheckResult:
    return system_runs.result(CODES[system], run(system, *trials, **more))


def reason(result: CheckResult) -> str:
    return result.reason + " ".join(one.reason for one in result.unjudged)
