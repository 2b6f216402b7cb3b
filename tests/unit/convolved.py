"""Made-up runs of the system "cudnn", on a GPU and on a CPU."""

from __future__ import annotations

import re
from typing import Any

from build import document, snapshot

from envcheck.checks.registry import all_checks
from envcheck.facts.acceleration import Acceleration, SystemRun, SystemTrial
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Framework
from envcheck.facts.view import SnapshotView
from envcheck.findings.model import Verdict

VERSIONS = {"torch": "2.5.1+cu124", "tensorflow": "2.15.1", "jax": "0.4.35"}


def convolution(name: str, outcome: Any = "ok", reason: str = "", **evidence: Any) -> SystemTrial:
    """A trial of the system "cudnn"; right, unless evidence says otherwise."""
    given = {"outputs": 2960, "differ": 0, **evidence} if outcome == "ok" else {}
    return SystemTrial(name=name, outcome=outcome, reason=reason, evidence=given)


NAMES = tuple(f"{d}D {one}" for d in (2, 3) for one in ("FP32", "TF32", "FP16", "BF16"))


def trials(*changed: SystemTrial, cudnn: int | None = 1) -> list[SystemTrial]:
    """All trials of a healthy run with some replaced. cudnn: of its operations that were seen."""
    by_name = {one.name: one for one in changed}
    counted = {} if cudnn is None else {"cudnn": cudnn}
    found = [by_name.get(name, convolution(name, **counted)) for name in NAMES]
    before = SystemTrial(name="nothing convolved yet", control=True, outcome="ok")
    version = SystemTrial(name="cuDNN", outcome="ok", evidence={"version": "9.1.0"})
    return [before, *found, version]


def run(made: list[SystemTrial], **changes: Any) -> SystemRun:
    given = {"framework": "torch", "outcome": "ok"} | changes
    given.setdefault("framework_version", VERSIONS[given["framework"]])
    return SystemRun(system="cudnn", trials=made, **given)


def looked_at(*runs: SystemRun) -> Snapshot:
    """The Snapshot of a deep look with these runs, in the target."""
    frameworks: dict[str, Any] = {
        one.framework: Framework(
            name=one.framework,  # type: ignore[arg-type]
            imported=True,
            version=VERSIONS[one.framework],
        )
        for one in runs
        if one.framework
    }
    target = document(
        "path:/venv",
        acceleration=Acceleration(systems=["cudnn"], runs=list(runs)),
        **frameworks,
    )
    return snapshot(target, acceleration=Acceleration(systems=[]))


def judged(*runs: SystemRun) -> list[Verdict]:
    """What ACC-011 says of these runs. Skip is raised as it is."""
    (found,) = (one for one in all_checks() if one.code == "ACC-011")
    return list(found.judge(SnapshotView(looked_at(*runs))))


def one(*runs: SystemRun) -> Any:
    """Its only verdict."""
    (verdict,) = judged(*runs)
    return verdict


def matches(pattern: str, verdict: Any) -> bool:
    """Whether its words hold the pattern: a detail, a reason, or a message with its headline."""
    words = [getattr(verdict, name, "") for name in ("detail", "reason", "message", "headline")]
    return re.search(pattern, " | ".join(words)) is not None
