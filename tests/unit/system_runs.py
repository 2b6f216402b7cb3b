"""Runs of acceleration systems as a Snapshot holds them, and what the checks make of them."""

from __future__ import annotations

from typing import Any

from targets import good_snapshot, judge, replace

from envcheck.facts.acceleration import Acceleration, SystemRun, SystemTrial
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult


def trial(
    name: str, outcome: Any = "ok", reason: str = "", control: bool = False, **evidence: Any
) -> SystemTrial:
    """Evidence that is None is not there."""
    kept = {key: value for key, value in evidence.items() if value is not None}
    return SystemTrial(name=name, control=control, outcome=outcome, reason=reason, evidence=kept)


def run(system: str, *trials: SystemTrial, **more: Any) -> SystemRun:
    given: dict[str, Any] = {"framework": "tensorflow", "framework_version": "2.15.1"}
    given |= {"outcome": "ok", "trials": list(trials)}
    return SystemRun(system=system, **(given | more))


def seen(*runs: SystemRun, asked: str = "", **probes: Any) -> Snapshot:
    """A good machine whose target has these probes, and on which these ran."""
    names = sorted({one.system for one in runs} | {asked} - {""})
    found = Acceleration(systems=names, runs=list(runs))
    return replace(
        good_snapshot(acceleration=found, **probes), "machine", acceleration=Acceleration()
    )


def result(code: str, *runs: SystemRun, asked: str = "", **probes: Any) -> CheckResult:
    return judge(seen(*runs, asked=asked, **probes), code, "acceleration")
