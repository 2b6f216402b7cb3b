"""Mixed precision that is asked for, TF32 by default, and versions that are known to be slow."""

from __future__ import annotations

from typing import Any

import pytest
from targets import dist, good_snapshot, gpu, judge, machine, packages, snapshot, tensorflow
from targets import good_target as target

from envcheck.facts.target import Environment
from envcheck.findings.model import CheckResult

AMP = "TF_ENABLE_AUTO_MIXED_PRECISION"


def on(code: str, area: str, version: str, variables: dict[str, str], **facts: Any) -> CheckResult:
    probes: dict[str, Any] = {
        "environment": Environment(variables=variables),
        "tensorflow": tensorflow(version=version, **facts),
        "packages": packages(dist("tensorflow", version)),
    }
    return judge(good_snapshot(**probes), code, area)


@pytest.mark.parametrize(
    ("version", "variables", "outcome"),
    [
        ("2.19.1", {}, "pass"),
        ("2.19.1", {AMP: "1"}, "warn"),
        ("2.19.1", {AMP: "0"}, "pass"),
        ("1.15.5", {f"{AMP}_GRAPH_REWRITE": "1"}, "warn"),
        ("1.15.5+nv22.12", {AMP: "1"}, "pass"),
        ("1.12.0", {AMP: "1", "NVIDIA_TENSORFLOW_VERSION": "18.12"}, "warn"),
        ("1.13.1", {AMP: "1", "NVIDIA_TENSORFLOW_VERSION": "19.03"}, "pass"),
        ("2.6.0", {AMP: "1", "NVIDIA_TENSORFLOW_VERSION": "21.10-tf2"}, "warn"),
        ("1.15.5", {AMP: "1", "NVIDIA_TENSORFLOW_VERSION": "21.10-tf1"}, "pass"),
    ],
)
def test_mixed_precision_by_a_variable(
    version: str, variables: dict[str, str], outcome: str
) -> None:
    result = on("ENV-010", "environment", version, variables)
    assert result.outcome == outcome
    for finding in result.findings:
        assert finding.remedy is not None
        assert AMP in finding.message and (
            finding.remedy.commands or "mixed" in finding.remedy.text
        )


def test_tf32_by_default_is_a_note() -> None:
    torch = tensorflow(name="torch", version="1.11.0")
    snap = good_snapshot(torch=torch, packages=packages(dist("tensorrt", "8.6.1")))
    result = judge(snap, "ENV-015", "environment")
    assert result.outcome == "pass"
    for words in (
        "TensorFlow 2.19.1",
        "PyTorch 1.11.0 computes FP32 with TF32 in matrix products",
        "trtexec --noTF32",
    ):
        assert words in result.note
    newer = judge(
        good_snapshot(torch=tensorflow(name="torch", version="2.5.1")), "ENV-015", "environment"
    )
    assert "PyTorch 2.5.1 computes FP32 with TF32 in convolutions alone" in newer.note
    variables = {"NVIDIA_TF32_OVERRIDE": "0"}
    switched = good_snapshot(torch=torch, environment=Environment(variables=variables))
    note = judge(switched, "ENV-015", "environment").note
    assert "NVIDIA_TF32_OVERRIDE=0 counts before" in note
    old = snapshot(target(), **machine(gpu(0, "Tesla V100", "7.0")))
    assert judge(old, "ENV-015", "environment").outcome == "skipped"
    unknown = good_snapshot(tensorflow=tensorflow(version="1.15.5"))
    assert judge(unknown, "ENV-015", "environment").outcome == "skipped"
