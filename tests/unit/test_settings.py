"""Settings that are wrong on a machine: the table, the files that they come from, and what is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networks
import pytest
from msgspec.structs import replace
from test_container_checks import NO_DAEMON, READY, judge

from envcheck.collector.containers import settings as collected
from envcheck.collector.facts import Facts
from envcheck.collector.runtime.context import Context
from envcheck.facts.base import ProgramSetting
from envcheck.facts.containers import BrokenFile, Kubernetes

TOOLKIT = "/etc/nvidia-container-runtime/config.toml"


def setting(name: str, value: str, source: str = TOOLKIT, missing: bool = False) -> ProgramSetting:
    return ProgramSetting(name=name, value=value, source=source, missing=missing)


CONTAINERS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "CTR-014",
        "configuration-broken",
        {
            "broken_files": [
                BrokenFile(path="/etc/docker/daemon.json", owner="docker", error="Expecting ','")
            ]
        },
    ),
    (
        "CTR-014",
        "option-given-twice",
        {
            "engines": [replace(READY.engines[0], server_version=NO_DAEMON)],
            "settings": [
                setting("docker.hosts", "fd://", "/etc/docker/daemon.json"),
                setting("dockerd.hosts", "fd://", "docker.service"),
            ],
        },
    ),
    ("CTR-014", "default-runtime-unknown",
     {"settings": [setting("docker.default-runtime", "nvidia", "/etc/docker/daemon.json")]}),
    (
        "CTR-014",
        "cri-disabled",
        {
            "settings": [
                setting("containerd.disabled_plugins", "cri", "/etc/containerd/config.toml")
            ],
            "kubernetes": Kubernetes(distribution="kubelet", engine="containerd"),
        },
    ),
    (
        "CTR-015",
        "envvar-refused",
        {
            "settings": [
                setting("toolkit.accept-nvidia-visible-devices-envvar-when-unprivileged", "false")
            ]
        },
    ),
    (
        "CTR-015",
        "no-ldconfig",
        {
            "settings": [
                setting(
                    "toolkit.nvidia-container-cli.ldconfig", "@/sbin/ldconfig.real", missing=True
                )
            ]
        },
    ),
    (
        "CTR-002",
        "docker-not-restarted",
        {
            "hook_path": networks.ABSENT,
            "engines": [
                replace(
                    READY.engines[0], runtimes=["runc"], cdi_enabled=False, server_version="27.0.0"
                )
            ],
            "settings": [
                setting(
                    "docker.runtimes.nvidia.path",
                    "nvidia-container-runtime",
                    "/etc/docker/daemon.json",
                )
            ],
        },
    ),
    ("CTR-002", "docker-desktop-on-linux",
     {"engines": [replace(READY.engines[0], desktop=True, remote=True)]}),
    ("CTR-006", "docker-before-clone3",
     {"engines": [replace(READY.engines[0], server_version="20.10.7")]}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "key", "changes"), CONTAINERS)
def test_engines(code: str, key: str, changes: dict[str, Any]) -> None:
    found = judge(code, replace(READY, **changes)).findings
    assert [one.cause.key for one in found] == [key]


def test_what_is_collected(tmp_path: Path) -> None:
    files = {
        "/etc/docker/daemon.json": json.dumps(
            {"hosts": ["fd://"], "runtimes": {"nvidia": {"path": "/usr/bin/gone"}}}
        ),
        "/lib/systemd/system/docker.service": "[Service]\n"
        "ExecStart=/usr/bin/dockerd -H fd:// --add-runtime=x=/x\n",
        "/etc/crio/crio.conf.d/1.conf": "[crio.runtime]\ndefault_runtime = 'crun'\n",
        "/root/.config/docker/daemon.json": "{",
    }
    for path, text in files.items():
        file = tmp_path / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    facts = Facts()
    collected.put(facts, Context({"HOME": "/root"}, root=str(tmp_path)))
    values = {one["name"]: (one["value"], one["missing"]) for one in facts.get("settings")}
    assert values == {
        "crio.crio.runtime.default_runtime": ("crun", False),
        "docker.hosts": ("fd://", False),
        "docker.runtimes.nvidia.path": ("/usr/bin/gone", True),
        "dockerd.hosts": ("fd://", False),
        "dockerd.runtimes": ("x=/x", False),
    }
    assert [one["owner"] for one in facts.get("broken_files")] == ["docker-rootless"]
