"""`envcheck run` with GPUs that are stand-ins (standin_cdi): the command starts only where they arrived."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from podman import PodmanWorld
from standin_cdi import StandinCdi, standin_cdi
from started import Installed, installed, plain_start

from envcheck.install.engine import Wiring

LOOK = """\
import ctypes, os, stat
cuda = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int()
print("cuInit", cuda.cuInit(0), "count", cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
print([name for name in sorted(os.listdir("/dev")) if name.startswith("nvidia")])
print(all(stat.S_ISCHR(os.stat("/dev/nvidia%d" % n).st_mode) for n in (0, 1)))
"""


@pytest.fixture(scope="module")
def cdi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandinCdi]:
    with standin_cdi(tmp_path_factory.mktemp("stand-in")) as made:
        yield made


@pytest.fixture
def two_gpus(podman_world: PodmanWorld, cdi: StandinCdi, tmp_path: Path) -> Iterator[Installed]:
    """An installed image whose start asks for both."""
    image = podman_world.id_of(podman_world.image("base"))
    start = plain_start("podman", str(shutil.which("podman")), image)
    before = podman_world.containers()
    yield installed(tmp_path / "home", podman_world.variables, start).change(
        wiring=wired(cdi.device("all")), gpus=2
    )
    assert podman_world.containers() == before


def wired(arguments: list[str]) -> Wiring:
    return Wiring(
        kind="cdi", arguments=arguments, environment={"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"}
    )


def test_the_command_starts_where_the_standins_arrive(two_gpus: Installed) -> None:
    done = two_gpus.run("python3", "-c", LOOK)
    assert done.stdout.decode().splitlines() == [
        "cuInit 0 count 0 2",
        "['nvidia0', 'nvidia1', 'nvidiactl']",
        "True",
    ], done.stderr
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("device", "words"), [("0", b"1 of 2 GPUs"), ("bare", b"libcuda.so.1")])
def test_a_start_in_which_something_is_missing_is_refused(
    two_gpus: Installed, cdi: StandinCdi, device: str, words: bytes
) -> None:
    done = two_gpus.change(wiring=wired(cdi.device(device))).run("touch", "started")
    assert done.returncode == 125 and words in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith(b"envcheck: ")
    assert not list(two_gpus.work.iterdir())
