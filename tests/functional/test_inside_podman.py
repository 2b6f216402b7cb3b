"""`envcheck doctor` looks into containers of a real podman: images, running ones, and those it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import PYTHON, envcheck, environment, refused
from podman import PodmanWorld
from processes import wait_for
from standin_cdi import INSIDE, StandinCdi, standin_cdi

pytestmark = pytest.mark.usefixtures("nothing_left")


def doctor(
    world: PodmanWorld, *arguments: str | Path, **more: str
) -> subprocess.CompletedProcess[bytes]:
    return envcheck("doctor", "--level=quick", *arguments, **world.variables, **more)


def collected(world: PodmanWorld, target: str, *arguments: str, **more: str) -> dict[str, Any]:
    done = envcheck(
        "collect", "--level=quick", "--target", target, *arguments, **world.variables, **more
    )
    assert done.returncode == 0, done.stderr.decode()
    snapshot: dict[str, Any] = json.loads(done.stdout)
    return snapshot


@pytest.fixture
def running(podman_world: PodmanWorld) -> Iterator[str]:
    """A container that runs, by its name."""
    name = "envcheck-test-runs"
    podman_world.podman("run", "-d", "--name", name, podman_world.image("base"), "sleep", "600")
    yield name
    podman_world.podman("rm", "--force", "--time", "0", name)


def test_an_image_is_seen_from_inside_and_outside(podman_world: PodmanWorld) -> None:
    image = podman_world.image("base")
    snapshot = collected(podman_world, f"image:{image}")
    machine, target = snapshot["machine"], snapshot["target"]
    assert target["location"] == f"image:{image}"
    assert target["interpreter"]["facts"]["executable"] == "/usr/local/bin/python3"
    assert target["host"]["facts"]["os_id"] == "envcheck-test" != machine["host"]["facts"]["os_id"]
    assert target["host"]["facts"]["container"] == "podman"
    assert machine["containers"]["outcome"] == "ok" and target.get("containers") is None
    names = [snapshot[side]["host"]["facts"]["hostname"] for side in ("machine", "target")]
    assert len(set(names)) == 2 and all("<host-" in name or name == "vm" for name in names)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("no-python", "there is no Python in it: neither python3 nor python is on its PATH"),
        (
            "python35",
            "its /usr/local/bin/python3 is Python 3.5.10, and envcheck needs 3.6 or newer",
        ),
        ("exits", "its entrypoint ended with status 3 and did not run the command"),
        ("arm64", ""),
    ],
)
def test_images_that_cannot_be_looked_into(
    podman_world: PodmanWorld, kind: str, words: str
) -> None:
    image = podman_world.image(kind)
    sentence = refused(doctor(podman_world, "--target", f"image:{image}"))
    # podman may lose the last line of a container that ends at once; the exit status tells then.
    without_line = "its Python is older than 3.6" if kind == "python35" else words
    assert f"image:{image}: " in sentence
    assert words in sentence or without_line in sentence


def test_a_running_container_is_entered_by_name_and_id(
    podman_world: PodmanWorld, running: str
) -> None:
    podman_world.podman("exec", running, "sh", "-c", "echo 'print(1)' > /tmp/sitecustomize.py")
    identity = podman_world.podman("inspect", "--format", "{{.Id}}", running).stdout.strip()
    for word in (running, identity[:12]):
        target = collected(podman_world, f"container:{word}", "--no-redact")["target"]
        assert target["location"] == f"container:{word}"
        assert target["packages"]["outcome"] == "ok"
        assert target["host"]["facts"]["hostname"] == identity[:12]
    left = podman_world.podman("exec", running, "sh", "-c", "ls -A /tmp; ls -A /root").stdout
    assert left.split() == ["sitecustomize.py"], "nothing of envcheck's is inside"


# With stand-in GPUs (standin_cdi): the host's are the same stub libraries, found by LD_LIBRARY_PATH.


@pytest.fixture(scope="module")
def cdi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandinCdi]:
    with standin_cdi(tmp_path_factory.mktemp("stand-in")) as made:
        yield made


def boundary(
    world: PodmanWorld, cdi: StandinCdi, *options: str, variables: str = INSIDE
) -> dict[str, Any]:
    """What the checks say of a running container that was started with these options."""
    name = "envcheck-test-gpus"
    image = world.image("base")
    world.podman(
        "run", "-d", "--name", name, "-e", f"LD_LIBRARY_PATH={variables}", *options, image, "sleep", "600"
    )  # fmt: skip
    try:
        done = doctor(world, "--target", f"container:{name}", "--format", "json", **cdi.host)
    finally:
        world.podman("rm", "--force", "--time", "0", name)
    assert done.returncode in (0, 1, 4), done.stderr
    return {result["code"]: result for result in json.loads(done.stdout)["results"]}


def test_standin_gpus_that_arrive(podman_world: PodmanWorld, cdi: StandinCdi) -> None:
    result = boundary(podman_world, cdi, *cdi.device("all"))
    assert result["BND-002"]["outcome"] == "pass" and result["BND-002"]["detail"] == "2 of 2"
    assert result["BND-003"]["outcome"] == "pass"
    assert result["BND-005"]["outcome"] == "pass"


SLOW = "#!/bin/sh\ntouch /started\nsleep 300\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_doctor_that_is_ended_leaves_nothing(
    podman_world: PodmanWorld, tmp_path: Path, number: signal.Signals
) -> None:
    """Process 1 of this container takes no SIGTERM, as a shell does not."""
    lines = 'COPY slow /slow\nRUN chmod 755 /slow\nENTRYPOINT ["/slow"]\n'
    recipe = f"FROM {podman_world.image('base')}\n{lines}"
    image = podman_world.build("localhost/envcheck-test/slow:1", recipe, {"slow": SLOW})
    before = podman_world.containers()
    started = subprocess.Popen(
        [PYTHON, "-m", "envcheck", "doctor", "--level=quick", "--target", f"image:{image}"],
        env=environment(**podman_world.variables, TMPDIR=str(tmp_path)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert wait_for(lambda: podman_world.containers() - before)
    os.kill(started.pid, number)
    assert started.wait(60) != 0
    assert wait_for(lambda: podman_world.containers() == before)
    assert wait_for(lambda: not list(tmp_path.iterdir()))
