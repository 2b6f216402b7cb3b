"""The described machine's facts: the collector's own probes, in this process, on its files and answers."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from envcheck.collector.facts import Facts, dumps
from envcheck.collector.probes import host, kernel, nvidia_smi, nvml, pci
from envcheck.collector.runtime.context import Context
from envcheck.collector.runtime.process import Result
from envcheck.facts.gpu import CudaDevice, CudaDriver, NvidiaSmi, Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel
from envcheck.facts.pci import Pci

from . import nvml_face
from .contents import File, Library, Link
from .machine import LIB, Machine, nvml_rows, tree

PROBES: dict[str, tuple[ModuleType, Any]] = {
    "host": (host, Host),
    "pci": (pci, Pci),
    "kernel": (kernel, Kernel),
    "nvml": (nvml, Nvml),
    "nvidia_smi": (nvidia_smi, NvidiaSmi),
}


class World(Context):  # type: ignore[misc]
    """What a probe of the machine below ``root`` may use; the only program that answers is nvidia-smi."""

    def __init__(self, machine: Machine, root: Path) -> None:
        super().__init__({"PATH": "/usr/bin", "HOME": "/root"}, str(root), {"pynvml": "pynvml.py"})
        self.machine = machine

    def run(self, argv: list[str], deadline: float, env: Any = None) -> Any:
        if Path(argv[0]).name != "nvidia-smi":
            return Result(argv, "not-started", None, b"", b"", 0.0, error="not here")
        document = tree(self.machine)["/.made/smi"]
        assert isinstance(document, str)
        return Result(argv, "exited", self.machine.smi_code, document.encode(), b"", 0.1)


def sections(machine: Machine) -> dict[str, Any]:
    """The machine's facts, by section, as the Snapshot's types."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        write(machine, Path(folder))
        patch.setattr(nvml, "load", lambda path: nvml_face.module(nvml_rows(machine)))
        patch.delitem(sys.modules, "pynvml", raising=False)
        world = World(machine, Path(folder))
        found = {
            name: _typed(probe.collect(world), kind, folder)
            for name, (probe, kind) in PROBES.items()
        }
    return found | {"cuda": cuda(machine)}


def _typed(facts: Facts, kind: Any, folder: str) -> Any:
    return msgspec.json.decode(dumps(facts.values).replace(folder, "").encode(), type=kind)


def cuda(machine: Machine) -> CudaDriver:
    """As the probe writes it down, which loads libcuda into its own process."""
    listed = [g for g in machine.gpus if g.cuda and g.index not in machine.hidden_from_cuda]
    return CudaDriver(
        library_path=f"{LIB}/libcuda.so.1",
        library_real_path=f"{LIB}/libcuda.so.{machine.driver}",
        init_code=0,
        init_name="CUDA_SUCCESS",
        driver_api_version="{}.{}".format(*machine.cuda),
        device_count=len(listed),
        devices=[
            CudaDevice(
                ordinal=ordinal,
                name=gpu.name,
                pci_address=gpu.address,
                uuid=f"GPU-{gpu.uuid}",
                compute_capability="{}.{}".format(*gpu.capability),
            )
            for ordinal, gpu in enumerate(listed)
        ],
    )


def write(machine: Machine, root: Path) -> None:
    """The machine's files below ``root``; libraries are empty files there."""
    for path, content in tree(machine).items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Link):
            place.symlink_to(content.to)
        elif isinstance(content, Library):
            place.write_bytes(b"\x7fELF")
        else:
            data = content.content if isinstance(content, File) else content
            assert data is not None
            place.write_bytes(data.encode() if isinstance(data, str) else data)
            place.chmod(content.mode if isinstance(content, File) else 0o755)
