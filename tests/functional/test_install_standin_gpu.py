"""`envcheck install` without a stack's name on a machine "with a GPU": chosen, installed, and verified there.

The GPU is a stand-in (``standin_gpu``), and so are NVIDIA's index and the TensorFlow in its wheels
(``nvidia_index``): one that sees the GPU, and one that does not.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nvidia_index
import pytest
import registry
from index_server import serve
from installing import Home
from pythons import need
from standin_gpu import Machine

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize("sees", [True, False])
def test_what_is_chosen_for_a_gpu_is_installed_where_tensorflow_sees_it(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sees: bool
) -> None:
    python = need(8)
    code = tmp_path / "tensorflow"
    shutil.copytree(nvidia_index.STANDINS, code)
    if sees:
        (code / "python" / "client" / "device_lib.py").write_text(SEES_IT)
    monkeypatch.setattr(nvidia_index, "STANDINS", code)
    recipe = nvidia_index.build(tmp_path / "indexes", ("23.03",))
    nvidia_index.add(recipe, *registry.fetch(tmp_path / "real", *nvidia_index.real_files()))
    home = Home(tmp_path / "home")
    with serve(recipe.nvidia, tmp_path / "n") as nvidia, serve(recipe.public, tmp_path / "p") as it:
        done = home.envcheck(
            "install", "--mode", "wheel", "--yes", "--python", python,
            "--index", f"nvidia={nvidia.url}", "--index", it.url,
            **machine.environment(SHIM_SLOW="0"),
        )  # fmt: skip
    said, told = done.stderr.decode(), done.stdout.decode()
    assert "23.03 is the newest release of nvidia-tf1" in " ".join(said.split())
    prefix = home.root("nvidia-tf1") / "current"
    if not sees:
        assert done.returncode == 5 and not prefix.exists(), said
        assert "FRM-002: TensorFlow sees none of the 1 GPU that CUDA sees" in said
        return
    assert done.returncode == 0, said
    assert "Installed and verified: nvidia-tf1 23.03" in told and prefix.is_dir()
    looked = home.envcheck("doctor", "--level=quick", **machine.environment())
    assert "Framework     OK       tensorflow 1.15.5+standin sees 1 GPU" in looked.stdout.decode()
