"""`envcheck install --mode container` by the catalogue, on a machine "with a GPU", from "nvcr.io".

Registry, GPU and TensorFlow are stand-ins (``standin_ngc``); podman, the pull, the digests and the doctor are
real. One TensorFlow sees the GPU, and another does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import standin_ngc
from base_images import SITE
from image_registry import Request
from installing import Home
from podman import PodmanWorld
from standin_ngc import KEY, LOGIN, Machine
from test_install_standin_gpu import SEES_IT
from watching import Watch

from envcheck.exit_codes import ExitCode

# What the stand-in's driver, of CUDA 12.2, meets: the newest of each flavour.
SEES, DOES_NOT = "23.03-tf1-py3", "23.06-tf2-py3"
SEEING = f"""\
FROM localhost/envcheck-test/tensorflow:1
COPY device_lib.py {SITE}/tensorflow/python/client/device_lib.py
"""


@pytest.fixture(scope="module")
def machine(
    tmp_path_factory: pytest.TempPathFactory, podman_world: PodmanWorld
) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("ngc")
    blind = podman_world.image("tensorflow")
    files: dict[str, str | Path] = {"device_lib.py": SEES_IT}
    with standin_ngc.machine(folder) as made:
        seeing = podman_world.build("localhost/envcheck-test/named:1", SEEING, files)
        for tag, image in ((SEES, seeing), (DOES_NOT, blind)):
            archive = podman_world.save(image, folder / f"{tag}.tar")
            made.registry.copy(f"oci-archive:{archive}", "nvidia/tensorflow", tag)
        yield made


@pytest.fixture
def home(tmp_path: Path, machine: Machine, world: PodmanWorld) -> Iterator[Home]:
    """Nothing may be left of an installation at the end."""
    before = world.images()
    made = Home(tmp_path / "home")
    machine.wire()
    yield made
    assert (world.images(), world.containers()) == (before, set())
    result = machine.envcheck(made, world, "list", "--format", "json")
    assert not any(one["versions"] for one in json.loads(result.stdout)["environments"])


def test_chosen_pulled_by_digest_verified_from_inside_run_and_removed(
    machine: Machine, home: Home, world: PodmanWorld
) -> None:
    with Watch([KEY, LOGIN], home, world) as watch:
        result = machine.install(home, world, "ngc-tf1")
    assert result["result"] == "installed", result["error"]
    assert watch.engines and not watch.seen()
    assert len(_blobs(machine)) == result["plan"]["layers"] + 1  # each once, and the configuration
    plan, environment = result["plan"], result["environment"]
    assert plan["reference"] == f"nvcr.io/nvidia/tensorflow:{SEES}"
    assert plan["reasons"] == ["23.03 is the newest release of ngc-tf1"]
    assert plan["wiring"] == environment["record"]["wiring"] == "by CDI (/etc/cdi/nvidia.json)"
    outcomes = _outcomes(home.root("ngc-tf1") / "current/.envcheck/doctor.json")
    verified = ("FRM-001", "FRM-002", "BND-001", "BND-003", "TC-101", "TC-201")
    assert {code: outcomes[code] for code in verified} == dict.fromkeys(verified, "pass")

    seen = "import ctypes, glob; ctypes.CDLL('libcuda.so.1'); print(sorted(glob.glob('/dev/nv*')))"
    ran = machine.envcheck(home, world, "run", "--", "python3", "-c", seen)
    assert ran.returncode == 0 and ran.stdout == b"['/dev/nvidia0', '/dev/nvidiactl']\n", ran.stderr

    machine.unwire()
    ran = machine.envcheck(home, world, "run", "--", "true")
    assert ran.returncode in (125, 126) and b"CDI devices nvidia.com/gpu=all" in ran.stderr
    machine.wire()

    looked = machine.envcheck(home, world, "doctor", "-v", "--level=quick")
    assert b"tensorflow 1.15.5+standin" in b" ".join(looked.stdout.split()), looked.stdout
    assert machine.envcheck(home, world, "uninstall", "--yes").returncode == 0


def test_a_tensorflow_that_sees_no_gpu_is_put_back(
    machine: Machine, home: Home, world: PodmanWorld, tmp_path: Path
) -> None:
    """The login is podman's own."""
    logins = tmp_path / "auth.json"
    logins.write_text(json.dumps({"auths": {"nvcr.io": {"auth": LOGIN}}}))
    with Watch([KEY, LOGIN], home, world) as watch:
        result = machine.install(home, world, REGISTRY_AUTH_FILE=str(logins), NGC_API_KEY="")
    assert watch.engines and not watch.seen()
    assert result["plan"]["reference"] == f"nvcr.io/nvidia/tensorflow:{DOES_NOT}"
    refused = result["plan"]["reasons"]
    assert any(reason.startswith("25.02") for reason in refused), refused
    assert result["exit_code"] == ExitCode.PUT_BACK
    assert (
        "FRM-002: TensorFlow sees none of the 1 GPU that CUDA sees" in result["error"]["sentence"]
    )
    assert machine.envcheck(home, world, "prune").returncode == 0


@pytest.mark.parametrize(
    ("version", "sentence", "command"),
    [("", "no CDI specification", "nvidia-ctk cdi generate"), ("1.1.0", "1.1.0", "nvidia-ctk cdi")],
)
def test_without_a_way_for_the_gpus_no_layer_is_fetched(
    machine: Machine, home: Home, world: PodmanWorld, version: str, sentence: str, command: str
) -> None:
    machine.wire(version) if version else machine.unwire()
    before = len(_blobs(machine))
    result = machine.install(home, world, "ngc-tf1")
    assert result["exit_code"] == ExitCode.CANNOT
    assert sentence in result["error"]["sentence"] and command in result["error"]["hint"]
    assert len(_blobs(machine)) == before


def _blobs(machine: Machine) -> list[Request]:
    asked = machine.registry.requests()
    return [one for one in asked if one.method == "GET" and "/blobs/sha256:" in one.path]


def _outcomes(report: Path) -> dict[str, str]:
    return {one["code"]: one["outcome"] for one in json.loads(report.read_text())["results"]}
