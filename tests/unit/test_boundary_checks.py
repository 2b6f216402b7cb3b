"""The checks on a container's boundary: what the host has against what came through."""

from __future__ import annotations

from functools import partial
from typing import Any

import judged
import pytest
from build import area_checks
from insides import (
    COMPAT,
    GPUS,
    IMAGE,
    RUNNING,
    both,
    cuda,
    host,
    no_libcuda,
    no_nvml,
    node,
    nodes,
    nvml,
    silent,
)
from judged import commands
from msgspec.structs import replace

from envcheck.checks.engine import diagnose
from envcheck.facts.containers import Containers, Engine
from envcheck.facts.kernel import Kernel
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult

CHECKS = area_checks("boundary")
CODES = [check.code for check in CHECKS]
only = partial(judged.only, level="fail")


def results(machine: Snapshot) -> dict[str, CheckResult]:
    return {result.code: result for result in diagnose(machine, checks=CHECKS).results}


def judge(code: str, *arguments: Any, **inside: Any) -> CheckResult:
    return results(both(*arguments, **inside))[code]


@pytest.mark.parametrize("location", [IMAGE, RUNNING])
def test_a_container_that_is_well_has_no_finding(location: str) -> None:
    assert {r.code: r.outcome for r in results(both(location)).values()} == dict.fromkeys(
        CODES, "pass"
    )


@pytest.mark.parametrize("code", [code for code in CODES[1:] if code != "BND-010"])
def test_what_nobody_looked_at_is_skipped(code: str) -> None:
    nothing = dict.fromkeys(("host", "kernel", "nvml", "nvidia_smi", "cuda"))
    assert judge(code, **nothing).outcome == "skipped"


# BND-002: GPUs


def test_fewer_gpus_inside_than_outside() -> None:
    finding = only(judge("BND-002", nvml=nvml(GPUS[1])))
    assert "1 of the host's 2 GPUs arrived in the container: GPU 0" in finding.message
    assert commands(finding) == (
        "podman run --device nvidia.com/gpu=all nvcr.io/nvidia/tensorflow:23.01-tf2-py3"
    )


def test_the_remedy_is_the_engine_s_own() -> None:
    engines = [Engine(name="docker", path="d", server_version="20.10", cdi_enabled=False)]
    from insides import SPEC

    around = {"containers": Containers(engines=engines, cdi_specs=[SPEC])}
    finding = only(
        judge("BND-002", host=host(container="docker"), outside=around, nvml=nvml(GPUS[0]))
    )
    assert "--gpus all" in commands(finding)


# BND-003: libraries


def test_an_engine_that_injected_nothing() -> None:
    lost = {"cuda": no_libcuda(), "nvml": no_nvml(12), "kernel": Kernel(device_nodes=[])}
    result = results(both(**lost))
    finding = only(result["BND-003"])
    assert "brought no libcuda" in finding.message and "nvidia.com/gpu=all" in commands(finding)
    assert result["BND-002"].consequence_of == "BND-003"
    assert result["BND-004"].outcome == result["BND-005"].outcome == "skipped"


# BND-004: which libcuda


def test_a_compat_copy_that_cuda_starts_with_is_legitimate() -> None:
    """Row 12 of failure-modes.md is about the same path where it does not work."""
    found = both(cuda=cuda(*GPUS, path=COMPAT, version="560.35.03"))
    result = results(found)["BND-004"]
    assert result.outcome == "pass" and "forward compatibility" in result.detail
    everything = {r.code: r.outcome for r in diagnose(found).results}
    assert "fail" not in everything.values()


@pytest.mark.parametrize(
    ("code", "brand", "words"),
    [
        (804, "GeForce", "for data-centre GPUs only"),
        (803, "NVIDIA", "driver 550.54.15 is not of a branch that it was made for"),
    ],
)
def test_a_compat_copy_that_may_not_run_here(code: int, brand: str, words: str) -> None:
    gpus = [replace(one, brand=brand) for one in GPUS]
    finding = only(
        judge(
            "BND-004",
            outside={"nvml": nvml(*gpus)},
            cuda=silent(code, path=COMPAT, version="560.35.03"),
        )
    )
    assert words in finding.message and f"error {code}" in finding.message


def test_a_stub() -> None:
    stub = "/usr/local/cuda/lib64/stubs/libcuda.so.1"
    finding = only(judge("BND-004", cuda=silent(34, path=stub, version="1")))
    assert "stub" in finding.message


# BND-005: answering


def test_nvml_alone_that_lost_them_is_enough() -> None:
    """A CUDA that runs already goes on; the next one does not start."""
    verdict = judge("BND-005", RUNNING, nvml=no_nvml(999))
    assert "has lost its GPUs" in only(verdict).message


def test_libraries_without_device_nodes() -> None:
    finding = only(
        judge("BND-005", nvml=no_nvml(9), cuda=silent(100), kernel=Kernel(device_nodes=nodes(0)))
    )
    assert "no device node of a GPU" in finding.message


def test_device_nodes_that_the_user_may_not_open() -> None:
    closed = [node("/dev/nvidia0", mode="0660", usable=False)]
    finding = only(
        judge("BND-005", nvml=no_nvml(4), cuda=silent(100), kernel=Kernel(device_nodes=closed))
    )
    assert "may not open them" in finding.message and "keep-groups" in commands(finding)


# Others, and the boundary


def test_a_container_s_limits_are_judged_with_the_host_s() -> None:
    def found(machine: Snapshot) -> list[str]:
        checks = [check for check in area_checks("host") if check.code in ("HOST-008", "HOST-009")]
        results = diagnose(machine, checks=checks).results
        return [finding.cause.key for result in results for finding in result.findings]

    little = host(shm_total_mib=64, cgroup_pids_limit=2048, memlock_kib=8192)
    causes = ["small-shared-memory-in-container", "low-memlock-limit", "too-few-processes"]
    assert found(both(host=little)) == causes
    assert found(both()) == []


def test_a_libcuda_of_another_driver() -> None:
    finding = only(judge("BND-004", cuda=silent(803, version="545.23.08")))
    assert "of driver 545.23.08, and the host runs 550.54.15" in finding.message
    assert "cdi generate" in commands(finding)
