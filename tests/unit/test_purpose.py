"""What a target is for decides what a missing GPU is."""

from __future__ import annotations

from typing import Any

import pytest
from distributed_runs import CODES, bad, run, well
from targets import (
    ABSENT,
    bare_machine,
    dist,
    good_target,
    not_imported,
    packages,
    replace,
    snapshot,
    tensorflow,
)

from envcheck.checks.driver_state import NO_GPUS_THERE
from envcheck.checks.engine import diagnose
from envcheck.checks.registry import all_checks
from envcheck.collector import systems
from envcheck.facts.acceleration import Acceleration
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Distribution, Framework, InstalledLock, Loader
from envcheck.findings.model import CheckResult
from envcheck.reports.model import status_of

CPU = dist("tensorflow_cpu", "2.21.0", normalized="tensorflow-cpu")
TORCH_CPU = dist("torch", "2.9.1+cpu")
TF_1 = dist("tensorflow", "1.15.5", installer="pip")
TORCH_2 = dist("torch", "2.13.0", installer="pip", requires=["filelock"])
NUMPY = InstalledLock(stack="acme-numpy", release="1.26.4", gpu=False, packages=[])
JAX = [dist("jax", "0.7.2"), dist("jaxlib", "0.7.2")]


def without_cuda(name: Any = "tensorflow") -> Framework:
    return tensorflow(name=name, cuda_build=False, gpus=[], libraries=[], built_cuda=ABSENT)


def on_no_gpu(*distributions: Distribution, **probes: Any) -> Snapshot:
    given: dict[str, Any] = {"tensorflow": None, "loader": Loader()} | probes
    return snapshot(good_target(packages=packages(*distributions), **given), **bare_machine())


def by_code(snap: Snapshot) -> dict[str, CheckResult]:
    return {result.code: result for result in diagnose(snap).results}


@pytest.mark.parametrize(
    ("distributions", "probes", "names"),
    [
        ([CPU], {"tensorflow": without_cuda()}, "tensorflow-cpu 2.21.0"),
        ([CPU], {}, "tensorflow-cpu 2.21.0"),
        ([CPU], {"tensorflow": not_imported()}, "tensorflow-cpu 2.21.0"),
        ([TF_1], {"tensorflow": not_imported()}, "tensorflow 1.15.5"),
        ([TORCH_2], {"torch": not_imported("torch")}, "torch 2.13.0"),
        ([dist("intel-tensorflow", "2.15.0")], {}, "intel-tensorflow 2.15.0"),
        ([dist("tensorflow", "2.21.0")], {"tensorflow": without_cuda()}, "tensorflow 2.21.0"),
        ([TORCH_CPU], {"torch": without_cuda("torch")}, "torch 2.9.1+cpu"),
        (JAX, {"jax": without_cuda("jax")}, "jax 0.7.2"),
        ([CPU, TORCH_CPU], {}, "tensorflow-cpu 2.21.0, torch 2.9.1+cpu"),
        ([dist("numpy", "1.26.4")], {"lock": NUMPY}, "acme-numpy 1.26.4"),
    ],
)
def test_a_target_that_needs_no_gpu_does_not_miss_one(
    distributions: list[Distribution], probes: dict[str, Any], names: str
) -> None:
    results = by_code(on_no_gpu(*distributions, **probes))
    for code in ("PCI-001", "DRV-001", "GPU-001"):
        assert results[code].outcome == "skipped", code
        assert results[code].reason == f"the target needs no GPU ({names})"
        assert not results[code].findings and not results[code].consequence_of
    assert {r.code for r in results.values() if r.outcome == "fail"} <= {"FRM-001"}


@pytest.mark.parametrize(
    "snap",
    [
        on_no_gpu(dist("tensorflow", "2.21.0")),
        on_no_gpu(dist("tensorflow", "2.21.0"), tensorflow=tensorflow(gpus=[], libraries=[])),
        on_no_gpu(CPU, dist("torch", "2.9.1")),
        on_no_gpu(CPU, dist("nvidia-tensorflow", "1.15.5+nv23.3")),
        on_no_gpu(*JAX, dist("jax-cuda12-plugin", "0.7.2")),
        on_no_gpu(CPU, dist("cupy-cuda12x", "13.0")),
        on_no_gpu(dist("numpy", "2.1.3")),
        snapshot(None, **bare_machine()),
    ],
)
def test_where_a_gpu_is_meant_or_nothing_is_known_it_is_one_finding(snap: Snapshot) -> None:
    results = by_code(snap)
    assert results["PCI-001"].outcome == "fail"
    assert results["DRV-001"].consequence_of == "PCI-001"
    assert status_of(diagnose(snap).results) == "broken"


def test_a_system_that_runs_on_the_cpu_is_judged_there_though_there_is_no_gpu() -> None:
    """Seen: MultiWorkerMirroredStrategy that got no answer, told as "the target needs no GPU"."""
    hung = bad("workers", "no answer within 60 s", "timeout")
    runs = [run("multiworker", hung), run("mirrored", well("mirrored"))]
    snap = on_no_gpu(
        CPU, tensorflow=without_cuda(), acceleration=Acceleration(systems=[*CODES], runs=runs)
    )
    snap = replace(snap, "machine", acceleration=Acceleration(systems=[]))
    results = by_code(snap)
    assert results[CODES["multiworker"]].outcome == "could-not-run"
    assert "no answer within 60 s" in results[CODES["multiworker"]].reason
    assert "needs no GPU" not in results[CODES["mirrored"]].reason


def test_no_gpu_explains_nothing_of_a_system_that_runs_without_one() -> None:
    for check in all_checks():
        mine = [one for one in systems.load() if one.name in check.systems]
        if mine and all(not one.gpus or one.on_cpu for one in mine):
            assert not set(check.follows) & set(NO_GPUS_THERE), check.code
