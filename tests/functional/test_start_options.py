"""Options of one start, in real containers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from podman import PodmanWorld
from started import Installed, installed, plain_start


@pytest.fixture
def image(podman_world: PodmanWorld, tmp_path: Path) -> Installed:
    found = podman_world.id_of(podman_world.image("base"))
    start = plain_start("podman", str(shutil.which("podman")), found)
    return installed(tmp_path / "home", podman_world.variables, start)


def test_without_and_with_another_entrypoint(image: Installed) -> None:
    echo = image.change(entrypoint="echo").run("hello")
    assert echo.stdout == b"hello\n"
    done = image.envcheck("run", "--entrypoint=", "echo", "bare")
    assert (done.returncode, done.stdout) == (0, b"bare\n")
