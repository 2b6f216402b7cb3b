"""The containers probe on a node of Kubernetes: made-up processes, configurations and kubelet's records."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world.kernel_tree import reason

from envcheck.collector.containers import kubernetes
from envcheck.collector.facts import Facts, dumps
from envcheck.collector.runtime.context import Context
from envcheck.facts.containers import Containers, Kubernetes

SOCKET = "--container-runtime-endpoint=unix:///run/containerd/containerd.sock"
V2 = """\
version = 2
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins."io.containerd.grpc.v1.cri"]
  enable_cdi = true
  cdi_spec_dirs = ["/etc/cdi"]
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "{default}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = true
"""
NVIDIA = """\
[plugins.'{section}'.containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"
  [plugins.'{section}'.containerd.runtimes.nvidia.options]
    BinaryName = "/usr/bin/nvidia-container-runtime"
"""
V2_SECTION, V3_SECTION = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"


class Node:
    """A machine's files, in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.number = 100

    def write(self, path: str, text: str = "") -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run(self, name: str, *arguments: str, environ: str = "") -> None:
        self.number += 1
        self.write(f"/proc/{self.number}/comm", f"{name[:15]}\n")
        self.write(f"/proc/{self.number}/cmdline", "\0".join((name, *arguments)) + "\0")
        self.write(f"/proc/{self.number}/environ", environ)

    def facts(self) -> Kubernetes | None:
        facts = Facts()
        kubernetes.put(facts, Context({}, root=str(self.root)))
        return msgspec.json.decode(dumps(facts.values).encode(), type=Containers).kubernetes

    def node(self) -> Kubernetes:
        found = self.facts()
        assert found is not None
        return found


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    made.write("/usr/bin/nvidia-container-runtime")
    return made


def test_a_runtime_in_a_drop_in(node: Node) -> None:
    node.run("kubelet", *SOCKET.split("="))
    node.run("containerd", "--config", "/etc/containerd/config.toml")
    node.write("/etc/containerd/config.toml", V2.format(default="nvidia"))
    node.write("/etc/containerd/conf.d/99-nvidia.toml", NVIDIA.format(section=V2_SECTION))
    facts = node.node()
    assert facts.runtimes == ["nvidia", "runc"] and facts.nvidia_runtimes == ["nvidia"]
    assert (facts.default_runtime, facts.cgroup_driver) == ("nvidia", "systemd")
    assert (facts.cdi_enabled, facts.cdi_spec_dirs) == (True, ["/etc/cdi"])
    assert facts.unread == []


@pytest.mark.parametrize(
    ("version", "section", "seen"),
    [
        (3, V3_SECTION, True),
        (2, V2_SECTION, True),
        (3, V2_SECTION, False),  # containerd 2 takes it for a plug-in of that name
        (2, V3_SECTION, False),
        (1, "cri", True),
    ],
)
def test_each_version_has_a_section_of_its_own(
    node: Node, version: int, section: str, seen: bool
) -> None:
    node.run("kubelet", SOCKET)
    node.run("containerd")
    text = f"version = {version}\n" + NVIDIA.format(section=section)
    node.write("/etc/containerd/config.toml", text)
    facts = node.node()
    assert facts.nvidia_runtimes == (["nvidia"] if seen else [])
    assert [one.section for one in facts.unread] == ([] if seen else [section])


def test_the_policy_of_the_cpu_manager(node: Node) -> None:
    node.run("kubelet", SOCKET)
    assert reason(node.node().cpu_manager_policy) == "absent"
    node.write("/var/lib/kubelet/cpu_manager_state", '{"policyName": "static"}')
    assert node.node().cpu_manager_policy == "static"


def test_what_the_kubelet_was_told_of(node: Node) -> None:
    node.run("kubelet", SOCKET)
    folder = "/var/lib/kubelet/device-plugins"
    assert reason(node.node().offered) == "absent"
    node.write(f"{folder}/kubelet.sock")
    assert node.node().offered == []
    record = {"Data": {"RegisteredDevices": {"nvidia.com/gpu": ["a", "b"], "x.com/nic": ["c"]}}}
    node.write(f"{folder}/kubelet_internal_checkpoint", json.dumps(record))
    (one,) = node.node().offered  # type: ignore[misc]
    assert (one.resource, one.count) == ("nvidia.com/gpu", 2)
    (node.root / "var/lib/kubelet/plugins/gpu.nvidia.com").mkdir(parents=True)
    assert reason(node.node().offered) == "not-supported"


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=200))
def test_any_configuration_gives_facts(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    node = Node(tmp_path_factory.mktemp("node"))
    node.run("kubelet", SOCKET)
    node.run("containerd")
    for path in ("/etc/containerd/config.toml", "/var/lib/kubelet/config.yaml"):
        (node.root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (node.root / path[1:]).write_text(text, encoding="utf-8")
    assert node.node().engine == "containerd"
