"""Commands in fresh containers of real engines, and the GPUs that arrive there.

The GPUs are stand-ins: character devices that are /dev/null's, named by a CDI specification that is seen in
a mount namespace of the test's own, and an empty file in libcuda's place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from docker_daemon import DockerDaemon
from podman import EITHER, PodmanWorld
from processes import ran

from envcheck.install.engine import EngineName, Start, Wiring
from envcheck.install.engines import command, gpu_count_check, inside
from envcheck.install.engines.command import Here

NONE = Wiring(kind="none", arguments=[])


def start(world: PodmanWorld | DockerDaemon, name: EngineName, **changes: object) -> Start:
    program = shutil.which(name, path=world.variables.get("PATH"))
    assert program
    values: dict[str, object] = {
        "engine": name,
        "program": program,
        "image": f"sha256:{world.id_of(world.image('base'))}",
        "reference": "localhost/base",
        "wiring": NONE,
        "gpus": 0,
    }
    return Start(**(values | changes))  # type: ignore[arg-type]


def here(directory: Path, **changes: object) -> Here:
    values: dict[str, object] = {"uid": 1234, "gid": 1234, "cwd": str(directory), "network": "none"}
    return Here(**(values | changes))  # type: ignore[arg-type]


def run(
    world: PodmanWorld | DockerDaemon, argv: Sequence[str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return ran(argv, input=stdin, text=True, env={**os.environ, **world.variables})


@pytest.fixture(params=EITHER)
def engine(
    request: pytest.FixtureRequest,
) -> Iterator[tuple[EngineName, PodmanWorld | DockerDaemon]]:
    fixture = {"podman": "podman_world", "docker": "docker_daemon"}[request.param]
    world = request.getfixturevalue(fixture)
    yield request.param, world
    assert not world.containers(), "a test leaves a container behind"


def test_the_command_runs_where_and_as_the_caller(
    engine: tuple[EngineName, PodmanWorld | DockerDaemon], tmp_path: Path
) -> None:
    name, world = engine
    place = tmp_path / 'a "b", c:d'
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    script = 'echo "$(id -u):$(id -g) $HOME $A_WISH"; pwd; cat; echo made > here; exit 7'
    whole = here(place, interactive=True, environment={"A_WISH": "1,2=3"})
    done = run(world, command.argv(start(world, name), ["sh", "-c", script], whole), "from stdin")
    assert done.stdout == f"1234:1234 /tmp 1,2=3\n{place}\nfrom stdin", done.stderr
    assert done.returncode == 7
    assert (place / "here").stat().st_uid == 1234


def test_an_entrypoint_comes_first_or_not_at_all(
    engine: tuple[EngineName, PodmanWorld | DockerDaemon],
) -> None:
    name, world = engine
    image = world.image("banner")
    printing, silent = (start(world, name, image=image, entrypoint=one) for one in (None, ""))
    with_it = run(world, [*inside.of_start(printing).argv, "echo", "ours"])
    without = run(world, [*inside.of_start(silent).argv, "echo", "ours"])
    assert with_it.stdout.endswith("ours\n") and with_it.stdout != "ours\n"
    assert without.stdout == "ours\n"


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Two GPUs' device nodes and a libcuda, all stand-ins."""
    made = tmp_path / "stand-in"
    made.mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        try:
            os.mknod(made / name, 0o20666, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("device nodes cannot be made here")
    (made / "libcuda.so.1").touch()
    return made


def test_the_check_without_a_container(nodes: Path) -> None:
    """The device nodes' folder stands in for /dev."""

    def check(gpus: int, **environ: str) -> subprocess.CompletedProcess[str]:
        argv = gpu_count_check.checked(gpus, ["sh", "-c", 'echo "$have $1"', "sh", "a  b*"])
        argv = [word.replace("/dev/", f"{nodes}/") for word in argv]
        whole = {"PATH": os.environ["PATH"], "have": "a wish", **environ}
        return ran(argv, text=True, env=whole)

    libraries = f"/nowhere:{nodes}"
    assert check(2, LD_LIBRARY_PATH=libraries).stdout == "a wish a  b*\n"
    less = check(3, LD_LIBRARY_PATH=libraries)
    assert (less.returncode, less.stdout) == (125, "") and "2 of 3 GPUs" in less.stderr
    if not Path("/usr/lib/x86_64-linux-gnu/libcuda.so.1").exists():
        assert check(2).returncode == 125
    (nodes / "nvidia0").rename(nodes / "dxg")  # WSL2: one node stands for all
    assert check(3, LD_LIBRARY_PATH=libraries).returncode == 0
