"""XLA in real frameworks on the CPU: engaged, switched off, stopped by a flag, and what cannot be told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli import envcheck
from processes import PATIENCE
from real_targets import real_target

pytestmark = pytest.mark.slow

TENSORFLOWS = ["tensorflow-1.15", "tensorflow-2.15", "tensorflow-newest"]


def results(
    name: str, folder: Path, *arguments: str, **variables: str
) -> dict[str, dict[str, Any]]:
    """The checks' results by their codes."""
    (folder / "tmp").mkdir(exist_ok=True)
    done = envcheck(
        "doctor",
        "--target",
        real_target(name),
        "--only",
        "xla",
        "--format",
        "json",
        *arguments,
        timeout=PATIENCE,
        TMPDIR=str(folder / "tmp"),
        **variables,
    )
    report = json.loads(done.stdout)
    assert list((folder / "tmp").iterdir()) == []
    return {one["code"]: one for one in report["results"]}


@pytest.mark.parametrize("name", TENSORFLOWS)
def test_engaged_in_tensorflow(name: str, tmp_path: Path) -> None:
    found = results(name, tmp_path)
    assert found["ACC-007"]["outcome"] == "pass", found["ACC-007"]
    assert found["ACC-007"]["detail"].endswith(": 1 module, 1 fusion, on the CPU")
    assert found["ACC-008"]["outcome"] == "pass", found["ACC-008"]
    assert ": 1 cluster, 1 module, 1 fusion, on the CPU" in found["ACC-008"]["detail"]


def test_engaged_in_jax(tmp_path: Path) -> None:
    found = results("jax", tmp_path)
    assert found["ACC-007"]["outcome"] == "pass", found["ACC-007"]
    assert found["ACC-007"]["detail"].endswith(": 1 module, 1 fusion, on the CPU")
    assert found["ACC-008"]["reason"] == "not applicable: the target has no TensorFlow"


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("tensorflow-1.15", "--tf_xla_min_cluster_size=1000"),
        ("tensorflow-2.15", "--tf_xla_auto_jit=-1"),
        ("tensorflow-newest", "--tf_xla_clustering_fuel=0"),
    ],
)
def test_a_variable_switches_clustering_off(name: str, flag: str, tmp_path: Path) -> None:
    found = results(name, tmp_path, TF_XLA_FLAGS=flag)
    assert found["ACC-007"]["outcome"] == "pass", found["ACC-007"]
    (finding,) = found["ACC-008"]["findings"]
    assert finding["headline"] == (
        f"XLA's auto-clustering is on and compiles nothing: TF_XLA_FLAGS={flag} switches it off"
    )


@pytest.mark.parametrize("name", ["tensorflow-2.15", "tensorflow-newest"])
def test_a_flag_that_nobody_knows_ends_the_process(name: str, tmp_path: Path) -> None:
    found = results(name, tmp_path, XLA_FLAGS="--xla_gpu_nonsense=1")
    (finding,) = found["ACC-007"]["findings"]
    assert "ends the process: XLA_FLAGS holds --xla_gpu_nonsense" in finding["headline"]
    assert finding["remedy"]["commands"] == ["unset XLA_FLAGS"]
