"""The proving ground of the container mode: engines of the tests' own, and the images in them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import base_images
import podman
import pytest
from docker_daemon import DockerDaemon
from leftovers import mounts_below, processes_of
from podman import PodmanWorld
from processes import PATIENCE

VERSION = 'import json, sys; print("%d.%d" % sys.version_info[:2])'
PYTHON = f"import ctypes, ssl, subprocess; {VERSION}"


def of_the_user(program: str, variables: Mapping[str, str]) -> set[str]:
    """What the user's own podman holds."""
    told = subprocess.run(
        [program, "images", "--all", "--quiet", "--no-trunc"],
        capture_output=True, text=True, check=False, env=dict(variables), timeout=PATIENCE,
    )  # fmt: skip
    return {line.removeprefix("sha256:") for line in told.stdout.split()}


def test_the_storage_is_the_tests_own(podman_world: PodmanWorld) -> None:
    ours = podman_world.id_of(podman_world.image("base"))
    assert ours in podman_world.images()
    assert ours not in of_the_user("podman", os.environ)
    told = podman_world.podman("info", "--format", "{{.Store.GraphRoot}} {{.Host.OCIRuntime.Name}}")
    assert told.stdout.split() == [str(podman_world.storage), "runc"]


def test_the_images_are_what_they_are_called(podman_world: PodmanWorld) -> None:
    def run(kind: str, *command: str, code: int = 0) -> str:
        image = podman_world.image(kind)
        return podman_world.podman("run", "--rm", image, *command, code=code).stdout

    version = f"{base_images.MINOR}\n"
    assert run("base", "python3", "-c", PYTHON) == version
    assert "libc.so.6" in run("base", "ldconfig", "-p")
    assert run("no-python", "sh", "-c", "command -v python3 || echo none") == "none\n"
    assert run("python35", "python3", "-c", PYTHON) == "3.5\n"
    assert run("banner", "python3", "-c", PYTHON) == f"== a banner ==\n\n{version}"
    assert run("exits", "python3", code=3) == ""
    assert run("user", "id", "-u") == f"{base_images.USER}\n"
    imports = "import tensorflow as tf; print(tf.__version__)"
    assert run("tensorflow", "python3", "-c", imports) == "1.15.5+standin\n"
    inspect = ["image", "inspect", "--format", "{{.Architecture}}", podman_world.image("arm64")]
    assert podman_world.podman(*inspect).stdout == "arm64\n"
    assert podman_world.containers() == set()


def test_a_python_that_is_really_too_old(podman_world: PodmanWorld) -> None:
    image = podman_world.image("python27")
    assert podman_world.podman("run", "--rm", image, "python3", "-c", VERSION).stdout == "2.7\n"


def test_nothing_is_left(tmp_path: Path, base_tar: Path, podman_world: PodmanWorld) -> None:
    """A container runs, an image is mounted, and the world ends."""
    with podman.world(tmp_path / "podman", base_tar) as made:
        run = made.run
        made.podman("run", "--detach", made.image("base"), "sleep", "1000")
        made.podman("image", "mount", made.image("base"))
        assert processes_of(run) and mounts_below(made.folder)
    assert not processes_of(run) and not mounts_below(tmp_path)
    assert not run.exists() and not (tmp_path / "podman").exists()


def test_what_does_not_work_is_said(
    tmp_path: Path, base_tar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("podman", "runc"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\necho 'no cgroups here' >&2\nexit 125\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with (
        pytest.raises(podman.Refused, match="no cgroups here"),
        podman.world(tmp_path / "podman", base_tar),
    ):
        pass
    assert not (tmp_path / "podman").exists()


def test_docker_has_them_too(docker_daemon: DockerDaemon) -> None:
    image = docker_daemon.image("banner")
    told = docker_daemon.docker("run", "--rm", image, "python3", "-c", PYTHON).stdout
    assert told == f"== a banner ==\n\n{base_images.MINOR}\n"
    rules = docker_daemon.docker("network", "ls", "--format", "{{.Driver}}").stdout.split()
    assert "bridge" not in rules
    assert docker_daemon.containers() == set()
