"""The Dockerfile that is one text, built by docker's classic builder: no cache mount, no heredoc."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import buildable
import pytest
import pythons
import registry
from demo_stack import stack_file
from docker_daemon import DockerDaemon
from index_server import serve
from installing import Home
from wheel_maker import wheel

NAME = "localhost/envcheck-test/one-text:1"


@pytest.mark.slow  # 20 s; test_dockerfile_runs.py carries the same text out with a shell
def test_it_is_built_from_standard_input(docker_daemon: DockerDaemon, tmp_path: Path) -> None:
    base = buildable.base(docker_daemon, 12)
    files = tmp_path / "files"
    wheel(files, "demo-framework", "1.0", requires=["demo-lib"])
    wheel(files, "demo-lib", "1.5")
    registry.fetch(files, "pip-26.3-py3-none-any.whl")
    with serve(files, tmp_path / "index") as public:
        stack = stack_file(tmp_path / "demo.toml", "1.0", python="3.12")
        options = ["--stack", stack, "--python", pythons.need(12), "--index", public.url]
        told = Home(tmp_path / "home").envcheck("install", *options, "--dockerfile")
        assert told.returncode == 0, told.stderr.decode()
        words = [
            "--network=host",
            "--build-arg",
            f"BASE={base}",
            "--build-arg",
            f"INDEX_URL={public.url}",
        ]
        built = subprocess.run(
            ["docker", "build", "--tag", NAME, *words, "-"],
            input=told.stdout,
            capture_output=True,
            env=docker_daemon.complete_variables,
            timeout=120,
            check=False,
        )
    assert built.returncode == 0, built.stdout.decode() + built.stderr.decode()
    say = "import demo_lib, os, sys; print(os.getuid(), sys.prefix)"
    assert (
        docker_daemon.docker("run", "--rm", NAME, "python", "-c", say).stdout == "10001 /opt/venv\n"
    )
    (config,) = json.loads(docker_daemon.docker("image", "inspect", NAME).stdout)
    labels = config["Config"]["Labels"]
    assert labels["envcheck.release"] == labels["org.opencontainers.image.version"] == "1.0"
    assert len(labels["envcheck.lock"].removeprefix("sha256:")) == 64
