"""The manifests in the manual: their form, and that what they start is there. No cluster runs them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from envcheck.collector import main as collector

yaml = pytest.importorskip("yaml")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "fleet-kubernetes.md"


def manifests() -> dict[str, dict[str, Any]]:
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    return {found["kind"]: found for found in map(yaml.safe_load, blocks)}


def pod(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = manifests()[kind]["spec"]["template"]["spec"]
    return found


def test_there_is_a_job_and_a_daemonset() -> None:
    found = manifests()
    assert {kind: one["apiVersion"] for kind, one in found.items()} == {
        "Job": "batch/v1",
        "DaemonSet": "apps/v1",
    }
    assert found["DaemonSet"]["spec"]["selector"]["matchLabels"] == {"app": "envcheck"}
    for one in found.values():
        assert one["spec"]["template"]["metadata"]["labels"] == {"app": "envcheck"}


@pytest.mark.parametrize("kind", ["Job", "DaemonSet"])
def test_what_is_mounted_is_there_and_what_is_started_is_the_collector(kind: str) -> None:
    (container,) = pod(kind)["containers"]
    volumes = {volume["name"]: volume for volume in pod(kind)["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == {*volumes}
    assert volumes["collector"]["configMap"] == {"name": "envcheck-collector"}
    assert (
        "create configmap envcheck-collector --from-file=envcheck-collector.py" in PAGE.read_text()
    )
    words = " ".join([*container["command"], *container.get("args", [])])
    started = re.search(r"python3 /envcheck/envcheck-collector\.py (--level=\w+)", words)
    assert started is not None
    assert collector._arguments([started[1]]).level == "quick"


def test_only_the_daemonset_asks_for_rights_and_only_the_job_for_gpus() -> None:
    job, daemon = pod("Job"), pod("DaemonSet")
    assert job["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 8}
    assert job["restartPolicy"] == "Never" and "hostPID" not in job
    assert "securityContext" not in job["containers"][0]
    assert daemon["hostPID"] is True
    assert daemon["containers"][0]["securityContext"] == {"privileged": True}
    assert "nvidia.com/gpu" not in str(daemon["containers"][0]["resources"])
