"""A bundle with an image, carried to a machine without a network: set up there, installed, run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from alone import ALONE
from cli import environment
from demo_stack import the_registry
from image_registry import serve_registry
from installing import Home
from podman import PodmanWorld
from processes import PATIENCE


@pytest.mark.slow  # 15 s; all but the real setup.sh is in test_image_bundle.py
def test_from_the_bundle_alone(
    podman_world: PodmanWorld, fresh_podman: PodmanWorld, tmp_path: Path, no_network: None
) -> None:
    made = tmp_path / "here" / "small image.tar"
    made.parent.mkdir()
    with serve_registry(tmp_path / "registry") as registry:
        archive = podman_world.save(podman_world.image("tensorflow"), tmp_path / "saved.tar")
        registry.copy(f"oci-archive:{archive}", "team/tensorflow", "1")
        reference = f"{registry.host}/team/tensorflow:1"
        words = ["--image", reference, "--index", the_registry()[1], "--output", made]
        run = Home(tmp_path / "maker").envcheck("bundle", "--mode", "container", *words)
        assert run.returncode == 0, run.stderr.decode()
    there = tmp_path / "there"
    there.mkdir()
    tar = Path(shutil.move(made, there))
    home = Home(tmp_path / "other home")
    variables = environment(**(home.variables | fresh_podman.variables))

    def alone(*argv: str | Path) -> str:
        done = subprocess.run(
            [*ALONE, *map(str, argv)],
            capture_output=True,
            text=True,
            env=variables,
            cwd=there,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    alone("tar", "-xf", tar.name, "setup.sh", "envcheck")
    told = alone("sh", "setup.sh")
    assert told == f"'{there}/venv/bin/envcheck' install --mode container --offline '{tar}'\n"
    before = fresh_podman.images()
    more = "--engine podman --allow-no-gpu"
    plan = alone("sh", "-c", f"{told.strip()} {more} --plan")
    assert reference in plan and "sha256:" in plan
    assert fresh_podman.images() == before
    alone("sh", "-c", f"{told.strip()} {more} --yes")
    say = "import tensorflow; print(tensorflow.__version__)"
    ran = alone(there / "venv/bin/envcheck", "run", "--", "python3", "-c", say)
    assert ran == "1.15.5+standin\n"
