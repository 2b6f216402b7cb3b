"""The checks on a node of Kubernetes: its engine's runtimes, and what the kubelet has to hand out."""

from __future__ import annotations

from typing import Any

import pytest
from build import area_checks, snapshot
from judged import commands
from msgspec.structs import replace
from test_container_checks import DOCKER, LINKED, READY, WITH_GPU

from envcheck.checks.engine import diagnose
from envcheck.facts.base import ProgramSetting, Unavailable
from envcheck.facts.containers import CdiSpec, Engine, Kubernetes, OfferedDevices, UnreadRuntime
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel
from envcheck.findings.model import CheckResult, Finding

CHECKS = [c for c in area_checks("container") if c.code in ("CTR-003", "CTR-009", "CTR-010")]
CONFIG = "/etc/containerd/config.toml"
ABSENT = Unavailable(unavailable="absent")
ROOT = Unavailable(unavailable="no-permission")
# A node as NVIDIA's instructions leave it.
NODE = Kubernetes(
    distribution="kubelet",
    engine="containerd",
    config=CONFIG,
    runtimes=["nvidia", "runc"],
    nvidia_runtimes=["nvidia"],
    default_runtime="nvidia",
    cgroup_driver="systemd",
    cdi_enabled=ABSENT,
    passes_devices=False,
    offered=[OfferedDevices(resource="nvidia.com/gpu", count=8)],
)
PLAIN = replace(
    NODE, runtimes=["runc"], nvidia_runtimes=[], default_runtime="runc", offered=[], config=CONFIG
)
NO_SPECS: list[CdiSpec] = []


def results(
    node: Kubernetes | None, kernel: Kernel = LINKED, **more: Any
) -> dict[str, CheckResult]:
    containers = replace(
        READY, **{"engines": [], "kubernetes": node, "cdi_specs": NO_SPECS, **more}
    )
    host = Host(os_id="ubuntu")
    made = snapshot(pci=WITH_GPU, kernel=kernel, containers=containers, host=host)
    return {result.code: result for result in diagnose(made, checks=CHECKS).results}


def only(result: CheckResult) -> Finding:
    (finding,) = result.findings
    assert result.outcome == finding.level == "warn"
    assert finding.evidence and finding.remedy is not None
    return finding


def outcomes(node: Kubernetes | None, **more: Any) -> list[str]:
    return [result.outcome for result in results(node, **more).values()]


WELL: dict[str, Kubernetes] = {
    "as instructed": NODE,
    "CDI by the device plugin": replace(PLAIN, offered=NODE.offered),
}


@pytest.mark.parametrize("name", WELL)
def test_nodes_that_are_well(name: str) -> None:
    assert {*outcomes(WELL[name])} <= {"pass", "skipped"}
    assert results(WELL[name])["CTR-009"].outcome == "pass"


def test_what_only_root_may_read_is_no_finding() -> None:
    node = replace(NODE, offered=ROOT, passes_devices=ROOT)
    assert set(outcomes(node)) <= {"pass", "skipped", "could-not-run"}
    hidden = replace(NODE, runtimes=ROOT, nvidia_runtimes=ROOT)
    assert not results(hidden)["CTR-009"].findings


def test_a_runtime_that_the_engine_does_not_read() -> None:
    """What nvidia-ctk 1.18 writes, beside a configuration that imports nothing."""
    drop_in = UnreadRuntime(path="/etc/containerd/conf.d/99-nvidia.toml", reason="not-imported")
    finding = only(results(replace(PLAIN, unread=[drop_in]))["CTR-009"])
    assert "99-nvidia.toml has one, which nothing imports" in finding.message
    assert finding.remedy is not None
    assert 'imports = ["/etc/containerd/conf.d/*.toml"]' in finding.remedy.text
    assert "nvidia-ctk runtime configure" not in commands(finding)
    section = "io.containerd.grpc.v1.cri"
    old = UnreadRuntime(path=CONFIG, reason="section", section=section)
    finding = only(results(replace(PLAIN, unread=[old]))["CTR-009"])
    assert f"has one under {section}" in finding.message
    assert "nvidia-ctk runtime configure" in commands(finding)


def test_each_distribution_has_its_way() -> None:
    node = {"distribution": "k3s", "config": "/var/lib/rancher/k3s/x.toml"}
    assert "systemctl restart k3s" in commands(only(results(replace(PLAIN, **node))["CTR-009"]))


# CTR-003


# CTR-006, CTR-011


def of_engines(code: str, host: Host, **changes: Any) -> CheckResult:
    checks = [check for check in area_checks("container") if check.code == code]
    made = snapshot(pci=WITH_GPU, kernel=LINKED, host=host, containers=replace(READY, **changes))
    (result,) = diagnose(made, checks=checks).results
    return result


def test_the_library_and_cgroup_v2() -> None:
    host = Host(os_id="debian", cgroup_version=2)
    result = of_engines("CTR-006", host, cli_version="1.7.0")
    assert result.outcome == "warn"
    assert "apt install -y nvidia-container-toolkit" in commands(only(result))


def podman(version: str, **changes: Any) -> Engine:
    engine = Engine(name="podman", path="/usr/bin/podman", version=version, remote=False)
    return replace(engine, **{"server_version": version, "cdi_spec_dirs": ABSENT, **changes})


def docker(folders: Any) -> Engine:
    return replace(DOCKER, cdi_spec_dirs=folders)


def test_where_engines_look() -> None:
    path = "/run/cdi/nvidia.json"
    specs = [CdiSpec(path=path, kind="nvidia.com/gpu", version="0.5.0", missing_paths=[])]
    result = of_engines("CTR-011", Host(), engines=[podman("5.5.1")], cdi_specs=specs)
    assert result.outcome == "warn"
    assert "/run/cdi" in only(result).message
    assert "nvidia-ctk cdi generate --output=" in commands(only(result))


def test_what_a_removed_toolkit_leaves_behind() -> None:
    gone = "/usr/local/nvidia/toolkit/nvidia-container-runtime"
    found = only(results(replace(NODE, missing_runtimes=[gone]))["CTR-009"])
    assert found.cause.key == "nvidia-runtime-gone" and gone in found.message


@pytest.mark.parametrize(
    ("runtime", "outcome"), [("nvidia-container-runtime", "pass"), ("crun", "warn")]
)
def test_cri_o(runtime: str, outcome: str) -> None:
    name = "crio.crio.runtime.runtimes.nvidia.runtime_path"
    settings = [
        ProgramSetting(name=name, value=f"/usr/bin/{runtime}", source="/etc/crio/crio.conf")
    ]
    node = Kubernetes(distribution="kubelet", engine="cri-o", offered=[])
    assert results(node, settings=settings)["CTR-009"].outcome == outcome
