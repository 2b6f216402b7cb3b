"""`envcheck install --mode container --engine docker` as a user types it: a real daemon and registry."""

from __future__ import annotations

import json
from pathlib import Path

from cli import envcheck
from docker_daemon import DockerDaemon
from image_registry import serve_registry
from installing import Home

from envcheck.exit_codes import ExitCode


def test_installed_run_looked_at_and_removed(docker_daemon: DockerDaemon, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    name = docker_daemon.image("tensorflow")
    archive = tmp_path / "tensorflow.tar"
    docker_daemon.docker("save", "--output", archive, name)
    docker_daemon.docker("rmi", docker_daemon.made.pop("tensorflow"))
    before = _state(docker_daemon)
    with serve_registry(tmp_path / "registry") as registry:
        registry.copy(f"docker-archive:{archive}", "team/tensorflow", "1")
        reference = f"{registry.host}/team/tensorflow:1"
        words = ["install", "--mode", "container", "--engine", "docker", "--yes"]
        done = home.envcheck(*words, "--image", reference, **docker_daemon.variables)
        assert done.returncode == 0, done.stderr.decode()
        assert b"Installed and verified" in done.stdout
        again = home.envcheck(*words, "--image", reference, **docker_daemon.variables)
        assert again.returncode == 0 and b"Already installed" in again.stdout
        missing = home.envcheck(*words, "--image", f"{reference}0", **docker_daemon.variables)
        assert missing.returncode == ExitCode.USAGE

    seen = "import os, tensorflow; print(tensorflow.__version__, os.getcwd(), os.getuid())"
    ran = envcheck(
        "run",
        "--",
        "python3",
        "-c",
        seen,
        cwd=tmp_path,
        **home.variables,
        **docker_daemon.variables,
    )
    assert ran.stdout.decode() == f"1.15.5+standin {tmp_path} 0\n", ran.stderr
    start = json.loads(
        (home.root("image-team-tensorflow") / "current/.envcheck/start.json").read_text()
    )
    # Without an init program the command is process 1, which the signal does not end.
    for command, code in (("exit 3", 3), ("kill -TERM $$", 143 if start["init"] else 0)):
        ran = home.envcheck("run", "--", "sh", "-c", command, **docker_daemon.variables)
        assert ran.returncode == code, ran.stderr
    looked = home.envcheck("doctor", "--format", "json", "--level=quick", **docker_daemon.variables)
    outcomes = {one["code"]: one["outcome"] for one in json.loads(looked.stdout)["results"]}
    assert outcomes["FRM-001"] == "pass"

    gone = home.envcheck("uninstall", "--yes", **docker_daemon.variables)
    assert gone.returncode == 0, gone.stderr.decode()
    assert _state(docker_daemon) == before


def _state(daemon: DockerDaemon) -> tuple[set[str], set[str], list[str]]:
    """Images, containers, and every name of an image."""
    names = daemon.docker("images", "--format", "{{.Repository}}:{{.Tag}} {{.Digest}}").stdout
    return daemon.images(), daemon.containers(), sorted(names.splitlines())
