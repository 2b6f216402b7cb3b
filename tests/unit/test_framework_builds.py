"""Checks on what a framework was built for: the driver, the GPU, CUDA, TensorRT."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from targets import (
    good_target,
    gpu,
    judge,
    machine,
    snapshot,
    system_library,
    tensorflow,
)
from test_framework_checks import on, torch

from envcheck.checks.fitness import code_for
from envcheck.checks.framework.causes import wheel_of
from envcheck.facts.target import Environment, Framework, FrameworkGpu, Loader
from envcheck.findings.model import CheckResult

# FRM-002


def test_what_the_user_hides_is_not_missed() -> None:
    one = tensorflow(gpus=[FrameworkGpu(name="NVIDIA H100 80GB HBM3")])
    chosen = Environment(variables={"CUDA_VISIBLE_DEVICES": "1"})
    assert on("FRM-002", one, environment=chosen).outcome == "pass"
    none = Environment(variables={"CUDA_VISIBLE_DEVICES": "-1"})
    hidden = on("FRM-002", tensorflow(gpus=[]), environment=none)
    assert hidden.outcome == "skipped" and "CUDA_VISIBLE_DEVICES" in hidden.reason


# FRM-003


def with_driver(driver: str, cuda: str, framework: Framework) -> CheckResult:
    target = good_target(tensorflow=framework)
    return judge(
        snapshot(target, **machine(gpu(), driver=driver, cuda=cuda)), "FRM-003", "framework"
    )


@pytest.mark.parametrize(
    ("driver", "cuda", "built", "outcome", "says"),
    [
        ("550.54.15", "12.4", "12.3", "pass", "supports 12.4"),
        ("535.104.05", "12.2", "12.5.1", "pass", "minor-version compatibility"),
        ("470.57.02", "11.4", "12.5.1", "fail", "needs driver 525.60.13"),
        ("440.33.01", "10.2", "11.2", "fail", "too old"),
        ("550.54.15", "12.4", "12.99", "skipped", "not known"),
        ("nonsense", "", "12.5.1", "skipped", "not known"),
    ],
)
def test_driver_against_the_builds_cuda(
    driver: str, cuda: str, built: str, outcome: str, says: str
) -> None:
    result = with_driver(driver, cuda, tensorflow(built_cuda=built))
    assert result.outcome == outcome
    words = result.reason + result.detail + "".join(finding.message for finding in result.findings)
    assert says in words


# FRM-004


def with_gpu(name: str, capability: str, built: list[str], **facts: Any) -> CheckResult:
    target = good_target(tensorflow=tensorflow(built_capabilities=built, **facts))
    probes = machine(gpu(0, name, capability), driver="570.124.06", cuda="12.8")
    return judge(snapshot(target, **probes), "FRM-004", "framework")


def test_a_tensorflow_with_code_for_the_gpu_is_named() -> None:
    result = with_gpu("NVIDIA H100", "9.0", ["sm_60", "sm_70"])
    (finding,) = result.findings
    assert finding.remedy is not None
    assert finding.remedy.commands[0].endswith("'tensorflow[and-cuda]==2.19.1'")
    unknown = with_gpu("NVIDIA B200", "10.0", ["sm_60", "sm_70"])
    assert unknown.findings[0].remedy is not None
    assert "nvcr.io/nvidia/tensorflow:25.02-tf2-py3" in unknown.findings[0].remedy.commands[0]
    other = on("FRM-004", tensorflow=None, torch=torch(built_capabilities=["sm_60"]))
    assert other.outcome == "fail"
    assert other.findings[0].remedy is not None
    assert "pip install torch==" in other.findings[0].remedy.commands[0]


@pytest.mark.parametrize(
    ("built", "why"), [([], "the capabilities that TensorFlow"), (["odd"], "means (odd)")]
)
def test_capabilities_that_cannot_be_read_are_not_known(built: list[str], why: str) -> None:
    result = with_gpu("NVIDIA H100", "9.0", built)
    assert result.outcome == "skipped" and result.reason.startswith("not known: ")
    assert why in result.reason


CAPABILITY = st.tuples(st.integers(3, 13), st.integers(0, 9))


@given(CAPABILITY, st.lists(CAPABILITY, max_size=6), st.booleans())
@settings(max_examples=30, deadline=None)
def test_code_for_a_gpu_follows_nvidias_rules(
    own: tuple[int, int], others: list[tuple[int, int]], with_ptx: bool
) -> None:
    capability = "{}.{}".format(*own)
    built = ["sm_{}{}".format(*other) for other in others]
    built += ["compute_{}{}".format(*other) for other in others] if with_ptx else []
    code = code_for(capability, built)
    native = any(other[0] == own[0] and other[1] <= own[1] for other in others)
    below = any(other <= own for other in others)
    assert code.kind == ("native" if native else "jit" if with_ptx and below else "none")
    assert (code.by in built) is (code.kind != "none")


@pytest.mark.parametrize(
    ("capability", "built", "kind"),
    [
        ("9.0", ["sm_90a"], "native"),
        ("9.0", ["compute_90a"], "jit"),
        ("10.0", ["sm_90a", "compute_90a"], "none"),
        ("12.1", ["sm_120f"], "native"),
        ("10.3", ["sm_120f", "compute_120f"], "none"),
        ("8.9", ["sm_80"], "native"),
        ("8.0", ["sm_86"], "none"),
        ("8.0", ["nonsense", "sm_", ""], "none"),
    ],
)
def test_architecture_specific_code(capability: str, built: list[str], kind: str) -> None:
    assert code_for(capability, built).kind == kind


# FRM-005


def test_a_cpu_build_beside_a_framework_that_sees_the_gpus_is_a_warning() -> None:
    cpu = torch(cuda_build=False, gpus=[], version="2.5.1+cpu")
    assert on("FRM-005", torch=cpu).outcome == "warn"
    assert (
        on("FRM-005", tensorflow=None, jax=msgspec.structs.replace(cpu, name="jax")).outcome
        == "fail"
    )


# FRM-006


@pytest.mark.parametrize(
    ("built", "there", "outcome"),
    [
        ("5.0.2", "5.1.2", "warn"),
        ("8.6.1", "8.5.3", "warn"),
        ("8.4.3", "8.6.1", "pass"),
        ("8.6.1", "10.3.0", "pass"),  # of another SONAME, which it does not ask for
    ],
)
def test_a_tensorrt_of_another_version(built: str, there: str, outcome: str) -> None:
    major = there.partition(".")[0]
    found = system_library("libnvinfer", f"libnvinfer.so.{major}", there)
    facts = tensorflow(tensorrt_build=True, built_tensorrt=built)
    assert on("FRM-006", facts, loader=Loader(libraries=[found])).outcome == outcome


@pytest.mark.parametrize(
    ("soname", "cuda", "wheel"),
    [
        ("libcudnn.so.8", "11.8", "nvidia-cudnn-cu11==8.*"),
        ("libcudnn.so.9", "12.5.1", "nvidia-cudnn-cu12==9.*"),
        ("libcudnn.so.9", "13.0", "nvidia-cudnn-cu13==9.*"),
        ("libcusolver.so.11", "12.3", "nvidia-cusolver-cu12"),
        ("libcusolver.so.12", "13.0", "nvidia-cusolver"),
        ("libcublas.so.12", "", "nvidia-cublas-cu12"),
        ("libcusolver.so.11", "", ""),
        ("libcudnn.so.7", "10.0", ""),
        ("libcudart.so.10.0", "10.0", ""),
        ("libnuma.so.1", "12.5", ""),
    ],
)
def test_the_wheel_that_brings_a_library(soname: str, cuda: str, wheel: str) -> None:
    assert wheel_of(soname, cuda) == wheel
