"""No machine of the fleet is told anything: all is well with them."""

from __future__ import annotations

import deep
import deep_working
import demos
import pytest
from fleet import PRODUCTS, fleet, slurm
from msgspec.structs import replace
from whole import diagnosed

from envcheck.facts.snapshot import Snapshot

FLEET = dict(fleet())


@pytest.mark.parametrize("name", FLEET)
def test_nothing_is_told_of_a_healthy_machine(name: str) -> None:
    told = {
        code: [finding.message for finding in result.findings] or result.reason
        for code, result in diagnosed(FLEET[name]).items()
        if result.outcome in ("fail", "warn")
    }
    if name.endswith("driver 560"):  # known to hang where GPUs reach each other directly
        told.pop("NET-008", None)
    assert not told


def without_gpus(snapshot: Snapshot, usable: bool) -> Snapshot:
    kernel = snapshot.machine.kernel
    assert kernel is not None and kernel.facts is not None
    nodes = [
        replace(node, usable=usable) if node.path[-1].isdigit() else node
        for node in kernel.facts.device_nodes  # type: ignore[union-attr]
    ]
    facts = replace(kernel.facts, device_nodes=nodes)
    return replace(snapshot, machine=replace(snapshot.machine, kernel=replace(kernel, facts=facts)))


def test_a_job_without_gpus_is_told_so() -> None:
    job = slurm(PRODUCTS[5])
    (finding,) = diagnosed(without_gpus(job, usable=False))["KRN-006"].findings
    assert "device cgroup" in finding.message
    assert finding.remedy is not None and "--gres=gpu:1" in finding.remedy.commands[0]


def test_gpus_that_nothing_closes_and_the_driver_does_not_list() -> None:
    assert diagnosed(without_gpus(slurm(PRODUCTS[5]), usable=True))["DRV-007"].outcome == "fail"


@pytest.mark.parametrize("name", FLEET)
def test_a_deep_look_tells_nothing_of_a_healthy_machine(name: str) -> None:
    """What real frameworks left behind on a CPU, and a look at GPUs that are all in use."""
    recorded = sorted(deep.recorded())
    one = recorded[list(FLEET).index(name) % len(recorded)]
    looks = {one: deep.looked(FLEET[name], one), "in use": deep.in_use(FLEET[name])}
    for look, snapshot in looks.items():
        told = {
            code: outcome
            for code, outcome in outcomes(snapshot).items()
            if outcome in ("fail", "warn") and code.startswith(("ACC", "MEM"))
        }
        assert not told, look


def test_a_deep_look_at_gpus_that_work_tells_nothing() -> None:
    found = diagnosed(deep_working.looked(demos.healthy()))
    told = {code: found[code].outcome for code in found if code.startswith(("ACC", "MEM"))}
    assert set(told.values()) == {"pass", "skipped"}
    assert [code for code in told if told[code] == "skipped"] == [
        "ACC-004",
        "ACC-010",
        "ACC-019",
    ]


def outcomes(snapshot: Snapshot) -> dict[str, str]:
    return {code: result.outcome for code, result in diagnosed(snapshot).items()}


def test_something_engages_in_the_recorded_looks() -> None:
    machine = FLEET["NVIDIA H100 80GB HBM3, alone"]
    engaged = {
        name.partition(" ")[0]
        for name in deep.recorded()
        for code, outcome in outcomes(deep.looked(machine, name)).items()
        if code.startswith("ACC") and outcome == "pass"
    }
    assert {"jax", "torch", "tensorflow"} <= engaged
