"""The checks on a node of Kubernetes: its engine's runtimes, and what the kubelet has to hand out."""

from __future__ import annotations

from typing import Any

import pytest
from build import area_checks, snapshot
from msgspec.structs import replace
from test_container_checks import DOCKER, LINKED, READY, UNLINKED, WITH_GPU

from envcheck.checks.engine import diagnose
from envcheck.facts.base import Unavailable
from envcheck.facts.containers import (
    CdiSpec,
    Engine,
    Kubernetes,
    OfferedDevices,
    UnreadRuntime,
)
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
    cpu_manager_policy="none",
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


def commands(finding: Finding) -> str:
    assert finding.remedy is not None
    return "\n".join(finding.remedy.commands)


def outcomes(node: Kubernetes | None, **more: Any) -> list[str]:
    return [result.outcome for result in results(node, **more).values()]


WELL: dict[str, Kubernetes] = {
    "as instructed": NODE,
    "by RuntimeClass": replace(NODE, default_runtime="runc"),
    "k3s": replace(
        NODE, distribution="k3s", config="/var/lib/rancher/k3s/x", default_runtime="runc"
    ),
    "CDI by the device plugin": replace(PLAIN, offered=NODE.offered),
    "DRA": replace(PLAIN, offered=Unavailable(unavailable="not-supported")),
    "CRI-O's hook": replace(PLAIN, engine="cri-o", hooks=["/x.json"], offered=NODE.offered),
    "MIG": replace(NODE, offered=[OfferedDevices(resource="nvidia.com/mig-1g.10gb", count=7)]),
}


@pytest.mark.parametrize("name", WELL)
def test_nodes_that_are_well(name: str) -> None:
    assert {*outcomes(WELL[name])} <= {"pass", "skipped"}
    assert results(WELL[name])["CTR-009"].outcome == "pass"


def test_without_a_kubelet() -> None:
    assert outcomes(None) == ["skipped", "skipped", "skipped"]


def test_containerd_without_nvidia_s_runtime() -> None:
    told = results(PLAIN, toolkit_path=ABSENT)
    finding = only(told["CTR-009"])
    assert CONFIG in finding.message and "0 GPUs" in finding.message
    assert "apt install -y nvidia-container-toolkit" in commands(finding)
    assert "nvidia-ctk runtime configure --runtime=containerd --set-as-default" in commands(finding)
    assert "systemctl restart containerd" in commands(finding)
    assert "docker run" not in commands(finding)
    assert told["CTR-010"].consequence_of == "CTR-009"


def test_a_specification_of_the_toolkit_s_is_no_way_into_pods() -> None:
    """nvidia-cdi-refresh writes one on every machine."""
    specs = [CdiSpec(path="/var/run/cdi/nvidia.yaml", kind="nvidia.com/gpu", missing_paths=[])]
    assert results(PLAIN, cdi_specs=specs)["CTR-009"].outcome == "warn"
    own = [CdiSpec(path="/var/run/cdi/k8s.yaml", kind="k8s.device-plugin.nvidia.com/gpu")]
    assert results(PLAIN, cdi_specs=own)["CTR-009"].outcome == "pass"


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({"engine": "cri-o", "config": "/etc/crio/crio.conf"}, "--runtime=crio"),
        ({"distribution": "k3s", "config": "/var/lib/rancher/k3s/x.toml"}, "systemctl restart k3s"),
        ({"distribution": "rke2", "config": "/x"}, "runtimeClassName=nvidia"),
        ({"distribution": "microk8s", "config": "/x"}, "microk8s enable nvidia"),
        (
            {"distribution": "k0s", "config": "/etc/k0s/containerd.toml"},
            "--config=/etc/k0s/containerd.toml",
        ),
    ],
)
def test_each_distribution_has_its_way(node: dict[str, str], words: str) -> None:
    assert words in commands(only(results(replace(PLAIN, **node))["CTR-009"]))


@pytest.mark.parametrize(
    ("unread", "words"),
    [
        (UnreadRuntime(path="/a.toml", reason="not-imported"), "does not import"),
        (UnreadRuntime(path="/a.toml", reason="section", section="cri"), "the section cri"),
    ],
)
def test_a_runtime_where_nobody_looks(unread: UnreadRuntime, words: str) -> None:
    finding = only(results(replace(PLAIN, unread=[unread]))["CTR-009"])
    assert words in finding.message and finding.subjects[0].text == "/a.toml"


def test_a_runtime_that_is_gone() -> None:
    node = replace(NODE, missing_programs=["/usr/bin/nvidia-container-runtime"])
    finding = only(results(node)["CTR-009"])
    assert "is not there" in finding.message
    assert "apt install -y nvidia-container-toolkit" in commands(finding)


@pytest.mark.parametrize(("default", "outcome"), [("runc", "warn"), ("nvidia", "pass")])
def test_docker_starts_pods_with_its_default_runtime(default: str, outcome: str) -> None:
    docker = replace(DOCKER, default_runtime=default)
    result = results(replace(NODE, engine="docker"), engines=[docker])["CTR-009"]
    assert result.outcome == outcome
    if outcome == "warn":
        told = commands(only(result))
        assert "--runtime=docker --set-as-default" in told and "systemctl restart docker" in told


def test_the_kubelet_was_told_of_nothing() -> None:
    node = replace(NODE, offered=[], default_runtime="runc")
    finding = only(results(node)["CTR-010"])
    assert "nvidia.com/gpu: 0" in finding.message
    assert "--set runtimeClassName=nvidia" in commands(finding)
    other = only(results(replace(NODE, offered=[]))["CTR-010"])
    assert "runtimeClassName" not in commands(other)


# CTR-003


def test_a_static_cpu_manager_takes_gpus_away() -> None:
    node = replace(NODE, cpu_manager_policy="static")
    finding = only(results(node)["CTR-003"])
    assert "compatWithCPUManager=true" in commands(finding)
    assert results(replace(node, passes_devices=True))["CTR-003"].outcome == "pass"
    unknown = replace(node, passes_devices=Unavailable(unavailable="error"))
    assert results(unknown)["CTR-003"].outcome == "skipped"


def test_a_daemon_reload_takes_gpus_away_from_pods() -> None:
    finding = only(results(NODE, kernel=UNLINKED)["CTR-003"])
    assert "daemon-reload" in finding.message and "create-dev-char-symlinks" in commands(finding)
    assert results(replace(NODE, cgroup_driver="cgroupfs"), kernel=UNLINKED)["CTR-003"].outcome == (
        "pass"
    )


# CTR-008, CTR-011


def of_engines(code: str, host: Host, **changes: Any) -> CheckResult:
    checks = [check for check in area_checks("container") if check.code == code]
    made = snapshot(pci=WITH_GPU, kernel=LINKED, host=host, containers=replace(READY, **changes))
    (result,) = diagnose(made, checks=checks).results
    return result


@pytest.mark.parametrize(
    ("version", "cgroups", "changes", "outcome"),
    [
        ("1.7.0", 2, {}, "warn"),
        ("1.3.3", 2, {}, "warn"),
        ("1.7.0", 1, {}, "pass"),
        ("1.8.0~rc.2", 2, {}, "pass"),
        ("1.18.1", 2, {}, "pass"),
        ("1.7.0", 2, {"toolkit_no_cgroups": True}, "pass"),
        ("1.7.0", 2, {"toolkit_mode": "cdi"}, "skipped"),
        ("1.7.0", 2, {"engines": []}, "skipped"),
        ("1.7.0", 2, {"engines": [], "oci_hooks": ["/x.json"]}, "warn"),
        (ABSENT, 2, {}, "skipped"),
        ("1.7.0", ABSENT, {}, "skipped"),
        ("new", 2, {}, "skipped"),
    ],
)
def test_the_library_and_cgroup_v2(
    version: Any, cgroups: Any, changes: dict[str, Any], outcome: str
) -> None:
    host = Host(os_id="debian", cgroup_version=cgroups)
    result = of_engines("CTR-008", host, cli_version=version, **changes)
    assert result.outcome == outcome
    if outcome == "warn":
        told = commands(only(result))
        assert "apt install -y nvidia-container-toolkit" in told


def spec(path: str) -> CdiSpec:
    return CdiSpec(path=path, kind="nvidia.com/gpu", version="0.5.0", missing_paths=[])


def podman(version: str, **changes: Any) -> Engine:
    engine = Engine(name="podman", path="/usr/bin/podman", version=version, remote=False)
    return replace(engine, **{"server_version": version, "cdi_spec_dirs": ABSENT, **changes})


def docker(folders: Any) -> Engine:
    return replace(DOCKER, cdi_spec_dirs=folders)


@pytest.mark.parametrize(
    ("engine", "place", "outcome"),
    [
        (podman("5.5.1"), "/run/cdi/nvidia.json", "warn"),
        (podman("5.5.1"), "/etc/cdi/nvidia.yaml", "pass"),
        (podman("5.5.1", cdi_spec_dirs=["/etc/cdi", "/run/cdi"]), "/var/run/cdi/x.yaml", "pass"),
        (podman("5.4.0"), "/run/cdi/nvidia.json", "pass"),
        (podman("5.6.0"), "/run/cdi/nvidia.json", "pass"),
        (podman("5.4.1", cdi_spec_dirs=["/opt/cdi"]), "/opt/cdi/x.yaml", "warn"),  # not read yet
        (podman("5.5.0", cdi_spec_dirs=["/opt/cdi"]), "/opt/cdi/x.yaml", "pass"),
        (podman("3.4.4"), "/run/cdi/nvidia.json", "skipped"),
        (docker(["/etc/cdi", "/var/run/cdi"]), "/run/cdi/nvidia.yaml", "pass"),
        (docker(["/opt/cdi"]), "/run/cdi/nvidia.yaml", "warn"),
        (docker([]), "/run/cdi/nvidia.yaml", "skipped"),
        (docker(ABSENT), "/run/cdi/nvidia.yaml", "skipped"),
    ],
)
def test_where_engines_look(engine: Engine, place: str, outcome: str) -> None:
    result = of_engines("CTR-011", Host(), engines=[engine], cdi_specs=[spec(place)])
    assert result.outcome == outcome
    if outcome == "warn":
        finding = only(result)
        assert place.rpartition("/")[0] in finding.message
        assert "nvidia-ctk cdi generate --output=" in commands(finding)
