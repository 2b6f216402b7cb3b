"""Runs of XLA and TF-TRT as a Snapshot holds them, for the checks."""

from __future__ import annotations

from typing import Any

from targets import good_snapshot, judge, replace

from envcheck.facts.acceleration import Acceleration, SystemRun, SystemTrial
from envcheck.facts.base import Probe
from envcheck.findings.model import CheckResult, Finding


def trial(name: str, outcome: Any = "ok", reason: str = "", **evidence: Any) -> SystemTrial:
    return SystemTrial(
        name=name,
        control=name in ("off", "disable_jit", "graph"),
        outcome=outcome,
        reason=reason,
        evidence=evidence,
    )


def run(*trials: SystemTrial, **more: Any) -> SystemRun:
    given: dict[str, Any] = {
        "system": "xla",
        "framework": "tensorflow",
        "framework_version": "2.15.1",
        "outcome": "ok",
        "trials": list(trials),
    }
    return SystemRun(**(given | more))


def result(code: str, *runs: SystemRun, asked: str = "", **probes: Any) -> CheckResult:
    """What a check says of these runs on a good machine, whose target has these probes."""
    names = sorted({one.system for one in runs} | {asked} - {""})
    target = Probe(outcome="ok", facts=Acceleration(systems=names, runs=list(runs)))
    snap = good_snapshot(**probes)
    snap = replace(snap, "machine", acceleration=Probe(outcome="ok", facts=Acceleration()))
    return judge(replace(snap, "target", acceleration=target), code, "acceleration")


def only(answer: CheckResult) -> Finding:
    assert answer.findings, (answer.outcome, answer.reason, answer.detail)
    (finding,) = answer.findings
    return finding


def full_text(finding: Finding) -> str:
    """All that a user reads of it."""
    assert finding.remedy is not None
    shown = [one.value for one in finding.evidence]
    return "\n".join(
        [finding.headline, finding.message, *shown, finding.remedy.text, *finding.remedy.commands]
    )
