"""A bundle as a build context: podman builds an image of it, which the doctor verifies while it is built."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import msgspec
import planned
import pytest
from demo_stack import stack_file, the_registry
from installing import Home
from planned import GAST, SETUPTOOLS, lock, stack
from podman import PodmanWorld

from envcheck.install.export.dockerfile import render

TIME = 500.0  # seconds for a build


def text(**environment: str) -> str:
    """Of a stack with an sdist that needs a program."""
    build = msgspec.structs.replace(stack().sdists[0].build, programs=["cmake"])
    sdist = msgspec.structs.replace(stack().sdists[0], sha256=GAST.file.sha256, build=build)
    of = planned.stack(environment=environment, sdists=[sdist])
    locked = lock(*lock().packages, GAST, building=[SETUPTOOLS])
    return render(of, locked, carries_python=False).decode()


def test_the_base_is_pinned_and_what_it_needs_is_named() -> None:
    pinned = r"\nARG BASE=docker.io/library/ubuntu:24.04@(sha256:[0-9a-f]{64})\nFROM \$\{BASE\}\n"
    found = re.search(pinned, text())
    assert found is not None and f"\nARG BASE_DIGEST={found[1]}\n" in text()
    assert '\nARG PACKAGES="python3 cmake"\n' in text()


@pytest.mark.parametrize("value", ['say "hi"', "$HOME", "a\\b", "two\nlines"])
def test_values_cannot_end_their_string(value: str) -> None:
    (line,) = [line for line in text(TF_X=value).splitlines() if line.startswith("ENV TF_X=")]
    assert re.fullmatch(r'ENV TF_X="((?:[^"\\$]|\\.)*)"', line), line


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
        "build", "--pull=never", "--network=none", *given, "--tag", name, made, seconds=TIME
    )
    run = ("run", "--rm", "--network=none", name)
    script = "import os, six; print(six.__version__, os.getuid(), os.access('/run/bundle', 0))"
    assert podman_world.podman(*run, "python", "-c", script).stdout == "1.17.0 10001 False\n"
    looked = podman_world.podman(*run, *shlex.split("envcheck doctor --format json"), code=None)
    assert json.loads(looked.stdout)["target"]["location"] == "path:/opt/stack/current"
