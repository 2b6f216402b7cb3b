"""`envcheck install` without a stack's name on a machine "with a GPU": chosen, installed, and verified there.

The GPU is a stand-in (``standin_gpu``), and so are NVIDIA's index and the TensorFlow in its wheel: one that
sees the GPU, and one that does not.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import registry
from index_server import serve
from installing import Home
from pythons import need
from standin_gpu import Machine
from wheel_maker import wheel

from envcheck.install.catalogue.load import seed

pytestmark = pytest.mark.slow

STANDINS = Path(__file__).parent / "standin_tensorflow"
SEES_IT = """\
class _Device:
    name = "/device:GPU:0"
    device_type = "GPU"
    physical_device_desc = (
        "device: 0, name: NVIDIA H200, pci bus id: 0000:83:00.0, compute capability: 9.0"
    )


def list_local_devices():
    return [_Device()]
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine"))


def write_indexes(nvidia: Path, public: Path, *, sees: bool) -> None:
    """NVIDIA's with the wheel of 23.03, the public one with what it imports and the real pip."""
    modules = {
        f"tensorflow/{path.relative_to(STANDINS)}": path.read_text().replace("UPSTREAM", "1.15.5")
        for path in sorted(STANDINS.rglob("*.py"))
    }
    if sees:
        modules["tensorflow/python/client/device_lib.py"] = SEES_IT
    wheel(
        nvidia,
        "nvidia-tensorflow",
        "1.15.5+nv23.03",
        inside="1.15.5+nv23.3",
        tags="cp38-cp38-linux_x86_64",
        requires=["protobuf"],
        extras={"horovod": []},
        modules=modules,
    )
    for version in ("3.20.3", "4.24.4"):
        module = {"google/protobuf/__init__.py": f'__version__ = "{version}"\n'}
        wheel(public, "protobuf", version, modules=module)
    registry.fetch(public, *(f"{p.replace('==', '-')}-py3-none-any.whl" for p in seed("3.8")))


@pytest.mark.parametrize("sees", [True, False])
def test_what_is_chosen_for_a_gpu_is_installed_where_tensorflow_sees_it(
    machine: Machine, tmp_path: Path, sees: bool
) -> None:
    python, home = need(8), Home(tmp_path / "home")
    own, others = tmp_path / "nvidia", tmp_path / "public"
    write_indexes(own, others, sees=sees)
    with serve(own, tmp_path / "n") as nvidia, serve(others, tmp_path / "p") as public:
        done = home.envcheck(
            "install", "--mode", "wheel", "--yes", "--python", python,
            "--index", f"nvidia={nvidia.url}", "--index", public.url,
            **machine.environment(SHIM_SLOW="0"),
        )  # fmt: skip
    progress, result = done.stderr.decode(), done.stdout.decode()
    assert "23.03 is the newest release of nvidia-tf1" in " ".join(progress.split())
    prefix = home.root("nvidia-tf1") / "current"
    if not sees:
        assert done.returncode == 5 and not prefix.exists(), progress
        assert "FRM-002: TensorFlow sees none of the 1 GPU that CUDA sees" in progress
        return
    assert done.returncode == 0, progress
    assert "Installed and verified: nvidia-tf1 23.03" in result and prefix.is_dir()
    assert "3.20.3" in str(list(prefix.glob("lib/python3.8/site-packages/protobuf*.dist-info")))
    looked = home.envcheck("doctor", "--level=quick", **machine.environment())
    assert looked.returncode == 0, looked.stdout.decode()
    assert "tensorflow 1.15.5+standin" in looked.stdout.decode()
