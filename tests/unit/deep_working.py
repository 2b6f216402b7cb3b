"""A deep look at GPUs that work: what each system would leave behind on the 8 × H100 of ``h100``."""

from __future__ import annotations

from typing import Any

import amp_runs
import distributed_runs
import memory_runs
import nccl_runs
from build import ok
from h100 import ADDRESSES
from msgspec.structs import replace
from system_runs import run, trial
from targets import good_target

from envcheck.collector import systems
from envcheck.facts.acceleration import Acceleration, SystemRun, SystemTrial
from envcheck.facts.snapshot import Snapshot

_OFF = trial("off", control=True, clusters=0, modules=0, fusions=0, runs=0, result=3871.7)
_COMPILED = trial("jit_compile", modules=1, fusions=1, result=3871.7, difference=0.0)
_CLUSTERED = trial(
    "auto-clustering", clusters=1, runs=1, modules=1, fusions=1, result=3871.7, difference=0.0
)
UNCLUSTERED = trial("auto-clustering", clusters=0, runs=0, modules=0, fusions=0, difference=0.0)


def _nccl() -> SystemRun:
    rates: dict[str, Any] = {"bus_32_mib": 276.0, "bus_1024_mib": 440.0, "algorithm": "NVLS"}
    trials = [nccl_runs.alone(), nccl_runs.trial(**rates)]
    return SystemRun(system="nccl", outcome="ok", gpus=ADDRESSES, trials=trials)


def horovod(**more: Any) -> SystemRun:
    """Eight ranks, a GPU each; over NCCL unless ``more`` says otherwise."""
    seen = {"ranks": 8, "size": 8, "sum": 36.0, "expected": 36.0}
    seen |= {"nccl": True, "operations": ["NCCL_ALLREDUCE"]}
    trials = [
        distributed_runs.control("horovod"),
        distributed_runs.well("horovod", **(seen | more)),
    ]
    return distributed_runs.run("horovod", *trials, device="gpu", gpus=ADDRESSES)


def clustering(last: SystemTrial = _CLUSTERED) -> SystemRun:
    return run("xla", _OFF, _COMPILED, last)


def runs() -> list[SystemRun]:
    """Of the target's systems: TensorFlow 2.15.1 with Horovod, neither TensorRT nor DALI."""
    found = [
        amp_runs.run(
            amp_runs.GRAPH,
            amp_runs.variables(),
            *amp_runs.ways("session"),
            *amp_runs.ways("function"),
        ),
        amp_runs.run(amp_runs.KERAS, *amp_runs.keras()),
        clustering(),
        _nccl(),
        horovod(),
    ]
    for system in ("mirrored", "multiworker"):
        made = [distributed_runs.control(system), distributed_runs.well(system)]
        found.append(distributed_runs.run(system, *made, device="gpu", gpus=ADDRESSES))
    absent = {"tf-trt": "built without TensorRT", "dali": "nvidia.dali is not installed"}
    for system, why in absent.items():
        facts: dict[str, Any] = {"outcome": "not-applicable", "reason": why}
        found.append(SystemRun(system=system, framework="tensorflow", **facts))
    return found


def looked(snapshot: Snapshot, *changed: SystemRun) -> Snapshot:
    """The machine of eight H100s with this look; ``changed`` replace the runs of their systems."""
    instead = {one.system for one in changed}
    made = [one for one in runs() if one.system not in instead] + list(changed)
    version: Any = _version(snapshot)
    made = [replace(one, framework_version=version) if one.framework else one for one in made]
    of_machine = set(memory_runs.SYSTEMS)
    machine = Acceleration(systems=sorted(of_machine), runs=memory_runs.runs())
    target = Acceleration(
        systems=sorted({one.name for one in systems.load()} - of_machine), runs=made
    )
    return replace(
        snapshot,
        machine=replace(snapshot.machine, acceleration=ok(machine)),
        target=replace(snapshot.target or good_target(), acceleration=ok(target)),
    )


def _version(snapshot: Snapshot) -> Any:
    probe = (snapshot.target or good_target()).tensorflow
    assert probe is not None and probe.facts is not None
    return probe.facts.version
