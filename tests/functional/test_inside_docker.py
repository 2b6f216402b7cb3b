"""`envcheck doctor` looks into containers of a real docker daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cli import envcheck
from docker_daemon import DockerDaemon


@pytest.fixture(autouse=True)
def nothing_left(docker_daemon: DockerDaemon) -> Iterator[None]:
    before = docker_daemon.containers()
    yield
    assert docker_daemon.containers() == before


def collected(world: DockerDaemon, target: str) -> dict[str, Any]:
    done = envcheck(
        "collect", "--level=quick", "--engine", "docker", "--target", target, **world.variables
    )
    assert done.returncode == 0, done.stderr.decode()
    snapshot: dict[str, Any] = json.loads(done.stdout)
    return snapshot


def test_a_fresh_container_of_an_image(docker_daemon: DockerDaemon) -> None:
    image = docker_daemon.image("base")
    target = collected(docker_daemon, f"image:{image}")["target"]
    assert target["location"] == f"image:{image}"
    assert target["packages"]["outcome"] == "ok"
    assert target["host"]["facts"]["container"] == "docker"


def test_a_running_container(docker_daemon: DockerDaemon) -> None:
    name = "envcheck-test-runs"
    docker_daemon.docker(
        "run", "-d", "--network=none", "--name", name, docker_daemon.image("base"), "sleep", "600"
    )
    try:
        target = collected(docker_daemon, f"container:{name}")["target"]
    finally:
        docker_daemon.docker("rm", "--force", name)
    assert target["location"] == f"container:{name}"
    assert target["host"]["facts"]["shm_total_mib"] == 64
