"""The Dockerfiles, built by podman on stand-ins for Ubuntu and NVIDIA's image.

Their Pythons are in the stand-ins: no test here has uv fetch one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import buildable
import pytest
import pythons
import registry
from demo_stack import stack_file, the_registry
from index_server import serve
from installing import Home
from podman import PodmanWorld
from wheel_maker import wheel

REPOSITORY = Path(__file__).parents[2]
NOBODY = "10001"
SECONDS = 1500.0  # of the longest build
OWN = """
[[indexes]]
name = "own"
urls = ["{url}"]
packages = ["demo-*"]
source = "the tests"
"""


def write(home: Home, folder: Path, *arguments: str, code: int = 0) -> str:
    """A context by the command itself: what it says."""
    done = home.envcheck("install", "--dockerfile", folder, *arguments)
    assert done.returncode == code, done.stderr.decode()
    return done.stderr.decode() if code else done.stdout.decode()


def build(world: PodmanWorld, name: str, context: Path, *more: str, **arguments: str) -> str:
    """The image, in docker's format: with its health check."""
    values = {"BASE_DIGEST": "", **arguments}
    mounts: list[str] = []
    if certificate := buildable.certificate():
        mounts = ["--volume", f"{certificate}:/run/authorities.crt:ro"]
        values["SSL_CERT_FILE"] = "/run/authorities.crt"
    told = [word for key, value in values.items() for word in ("--build-arg", f"{key}={value}")]
    world.podman(
        "build", "--quiet", "--layers=false", "--format", "docker", "--pull=never",
        "--network=host", "--tag", name, *mounts, *told, *more, context, seconds=SECONDS,
    )  # fmt: skip
    return name


def config(world: PodmanWorld, image: str) -> dict[str, Any]:
    (told,) = json.loads(world.podman("image", "inspect", image).stdout)
    return {**told["Config"], "Healthcheck": told.get("HealthCheck") or told.get("Healthcheck")}


def run(world: PodmanWorld, image: str, *command: str, code: int = 0) -> str:
    done = world.podman("run", "--rm", image, *command, code=None)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def doctor(world: PodmanWorld, image: str, *arguments: str) -> dict[str, str]:
    """Outcomes by code; a machine without a GPU is 1."""
    told = run(world, image, "envcheck", "doctor", "--format", "json", *arguments, code=1)
    found = json.loads(told[told.index("{") :])
    return {result["code"]: result["outcome"] for result in found["results"]}


@pytest.fixture(scope="module")
def public() -> str:
    """This machine's index, from which the build gets envcheck's own needs."""
    return the_registry()[1]


@pytest.fixture(scope="module")
def wheel_image(
    podman_world: PodmanWorld, public: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A small stack on a stand-in for Ubuntu 24.04: Python 3.12 for the stack and for envcheck."""
    folder = tmp_path_factory.mktemp("wheel-image")
    base = buildable.base(podman_world, 12)
    wheel(folder / "own", "demo-framework", "1.0", requires=["demo-lib"])
    wheel(folder / "own", "demo-lib", "1.5", payload=100_000)
    registry.fetch(folder / "real", "pip-26.3-py3-none-any.whl")  # skips without an index
    with serve(folder / "own", folder / "index") as own:
        more = OWN.format(url=own.url)
        stack = stack_file(folder / "demo.toml", "1.0", python="3.12", more=more)
        home = Home(folder / "home")
        write(
            home, folder / "context", "--stack", str(stack), "--python", pythons.need(12),
            "--index", public,
        )  # fmt: skip
        name = "localhost/envcheck-test/wheel-image:1"
        yield build(podman_world, name, folder / "context", BASE=base, UV_DEFAULT_INDEX=public)


def test_a_stacks_image_holds_the_lock_and_a_doctor_and_nobody_is_root(
    podman_world: PodmanWorld, wheel_image: str
) -> None:
    listed = run(podman_world, wheel_image, "python", "-m", "pip", "list", "--format", "freeze")
    assert {"demo-framework==1.0", "demo-lib==1.5"} <= set(listed.split())
    assert not {line for line in listed.split() if line.startswith("envcheck")}, "beside, not in it"
    assert run(podman_world, wheel_image, "id", "-u").strip() == NOBODY
    outcomes = doctor(podman_world, wheel_image)
    assert len(outcomes) > 50
    told = config(podman_world, wheel_image)
    assert told["User"] == NOBODY
    lock = told["Labels"]["envcheck.lock"]
    assert lock.startswith("sha256:") and len(lock) == 71
    assert told["Labels"]["envcheck.release"] == "1.0"
    kept = run(podman_world, wheel_image, "cat", "/opt/lock/requirements-own.txt")
    assert lock.removeprefix("sha256:") in kept, "the lists in the image are of this lock"


@pytest.mark.slow
def test_nvidias_image_keeps_its_entrypoint_and_gets_a_doctor(
    podman_world: PodmanWorld, public: str, tmp_path: Path
) -> None:
    """Upon Python 3.8, as 23.03's is, with pip constrained as NVIDIA's images do."""
    script = '#!/bin/sh\necho "== a stand-in for NVIDIA =="\nexec "$@"\n'
    base = buildable.base(
        podman_world, 8, "COPY entrypoint /entrypoint",
        "RUN chmod 755 /entrypoint && mkdir /workspace && echo rich==1.0 > /etc/constraint.txt",
        "ENV PIP_CONSTRAINT=/etc/constraint.txt", "WORKDIR /workspace",
        'ENTRYPOINT ["/entrypoint"]', 'CMD ["id"]', files={"entrypoint": script},
    )  # fmt: skip
    context = tmp_path / "context"
    write(Home(tmp_path / "home"), context, "--mode", "container")
    committed = REPOSITORY / "Dockerfiles/ngc.Dockerfile"
    assert (context / "Dockerfile").read_bytes() == committed.read_bytes()
    image = build(
        podman_world, "localhost/envcheck-test/ngc:1", context,
        "--file", str(committed), BASE=base, UV_DEFAULT_INDEX=public,
    )  # fmt: skip
    told = run(podman_world, image)
    assert "a stand-in for NVIDIA" in told and f"uid={NOBODY}" in told
    assert config(podman_world, image)["WorkingDir"] == "/home/envcheck"
    assert run(podman_world, image, "python3", "--version").split()[-2:][1].startswith("3.8.")
    outcomes = doctor(podman_world, image, "--target", "/usr/local/bin/python3")
    assert len(outcomes) > 50
