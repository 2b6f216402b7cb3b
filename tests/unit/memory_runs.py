"""Made-up runs of "memory", "links" and "peers" on the 8 × H100 machine of ``h100``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from build import ok
from h100 import ADDRESSES, COUNT, machine

from envcheck.checks import registry
from envcheck.checks.engine import diagnose
from envcheck.facts.acceleration import Acceleration, SystemRun, SystemTrial
from envcheck.facts.gpu import Gpu
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult

SYSTEMS = ["links", "memory", "peers"]
Change = Callable[[dict[str, SystemTrial]], None]


SPELT = {"gb_s": "GB/s", "mib": "MiB", "l2_mib": "L2_MiB"}


def spelt(evidence: dict[str, Any]) -> dict[str, Any]:
    """With the units as the systems write them, which are no names in Python."""
    return {SPELT.get(name, name): value for name, value in evidence.items()}


def trial(name: str, outcome: Any = "ok", reason: str = "", **evidence: Any) -> SystemTrial:
    return SystemTrial(name=name, outcome=outcome, reason=reason, evidence=spelt(evidence))


def _named(*trials: SystemTrial) -> dict[str, SystemTrial]:
    return {one.name: one for one in trials}


def memory_trials() -> dict[str, SystemTrial]:
    return _named(
        trial("device", integrated=False, l2_mib=50.0, instance=False, free_mib=80000),
        trial("pattern", mib=20000, wrong=0),
        trial("inverted pattern", mib=20000, wrong=0),
        trial("copy", gb_s=2610.0, mib=1024, spread=1.01, runs=200, memory_mhz=2619),
        trial("read", gb_s=2900.0, mib=512, spread=1.01, runs=200),
    )


def links_trials() -> dict[str, SystemTrial]:
    seen = {"pcie_gen": 5, "pcie_width": 16}
    return _named(
        trial("device", integrated=False, instance=False, runs_near=True),
        trial("round trip", mib=64, wrong=0),
        trial("pinned to the GPU", gb_s=55.1, mib=64, **seen),
        trial("pinned from the GPU", gb_s=54.2, mib=64, **seen),
    )


def peers_trials(count: int = COUNT) -> dict[str, SystemTrial]:
    found = []
    for place, one in enumerate(ADDRESSES[:count]):
        for other in ADDRESSES[place + 1 : count]:
            ends = {"mib": 64, "wrong": 0}
            for here, there in ((one, other), (other, one)):
                name = f"directly {here} to {there}"
                found.append(trial(name, gb_s=380.0, wrong_read=0, **ends))
    return _named(*found)


def run(system: str, trials: dict[str, SystemTrial], place: int = 0, **facts: Any) -> SystemRun:
    gpus = ADDRESSES if system == "peers" else [ADDRESSES[place]]
    values: dict[str, Any] = {"outcome": "ok", "trials": list(trials.values()), "gpus": gpus}
    return SystemRun(system=system, **{**values, **facts})


def runs(count: int = COUNT) -> list[SystemRun]:
    """Every run of a healthy machine."""
    found = [run("memory", memory_trials(), place) for place in range(count)]
    found += [run("links", links_trials(), place) for place in range(count)]
    return [*found, run("peers", peers_trials(count))]


def with_runs(
    made: list[SystemRun],
    gpus: list[Gpu] | None = None,
    asked: list[str] = SYSTEMS,
    **sections: Any,
) -> Snapshot:
    """The machine, on which these ran."""
    snapshot = machine(gpus, **sections)
    found = Acceleration(systems=asked, runs=made)
    document = msgspec.structs.replace(snapshot.machine, acceleration=ok(found, "run"))
    return msgspec.structs.replace(snapshot, machine=document)


def changed(
    system: str, change: Change, place: int = 0, count: int = COUNT, **facts: Any
) -> list[SystemRun]:
    """A healthy machine's runs, of which this one is another."""
    trials = {"memory": memory_trials, "links": links_trials, "peers": lambda: peers_trials(count)}
    made = trials[system]()
    change(made)
    rest = [
        one
        for one in runs(count)
        if one.system != system or (system != "peers" and one.gpus != [ADDRESSES[place]])
    ]
    return [*rest, run(system, made, place, **facts)]


def set_(name: str, outcome: Any = None, reason: str = "", **evidence: Any) -> Change:
    """A Change: this trial's evidence or outcome is another."""

    def change(trials: dict[str, SystemTrial]) -> None:
        old = trials[name]
        trials[name] = SystemTrial(
            name=name,
            outcome=outcome or old.outcome,
            reason=reason,
            evidence={} if outcome else {**old.evidence, **spelt(evidence)},
        )

    return change


def both(*changes: Change) -> Change:
    def change(trials: dict[str, SystemTrial]) -> None:
        for one in changes:
            one(trials)

    return change


def judged(snapshot: Snapshot, code: str) -> CheckResult:
    """One check's result, without those that would explain it."""
    checks = [one for one in registry.all_checks() if one.code == code]
    return diagnose(snapshot, checks=checks).results[0]
