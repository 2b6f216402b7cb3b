"""A bundle as a build context: podman builds an image of it, which the doctor verifies while it is built."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from demo_stack import stack_file, the_registry
from installing import Home
from podman import PodmanWorld

DOCKERFILE = Path(__file__).parents[2] / "Dockerfiles" / "bundle.Dockerfile"
TIME = 500.0  # seconds for a build


@pytest.mark.engine
def test_podman_builds_the_image_of_a_bundle(tmp_path: Path, podman_world: PodmanWorld) -> None:
    """With this machine's Python in the base, and without a network."""
    demo = stack_file(tmp_path / "demo.toml", "1.17.0", distribution="six")
    made = tmp_path / "made"
    result = Home(tmp_path / "home").envcheck(
        "bundle", "--stack", demo, *the_registry(), "--python", sys.executable, "--output", made
    )
    assert result.returncode == 0, result.stderr.decode()
    base, name = podman_world.image("base"), "localhost/envcheck-test/demo:1"
    arguments = {"BASE": base, "BASE_DIGEST": "", "PACKAGES": ""}
    given = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
    podman_world.podman(
        "build",
        "--pull=never",
        "--network=none",
        *given,
        "--file",
        DOCKERFILE,
        "--tag",
        name,
        made,
        seconds=TIME,
    )
    run = ("run", "--rm", "--network=none", name)
    script = "import os, six; print(six.__version__, os.getuid(), os.access('/run/bundle', 0))"
    assert podman_world.podman(*run, "python", "-c", script).stdout == "1.17.0 10001 False\n"
    looked = podman_world.podman(*run, *shlex.split("envcheck doctor --format json"), code=None)
    assert json.loads(looked.stdout)["target"]["location"].startswith("path:/opt/stack/1.17.0-")
