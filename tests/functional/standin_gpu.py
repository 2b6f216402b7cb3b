"""A stand-in for a machine with Hopper GPUs: libraries that compute, a target with a stand-in PyTorch."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from pythons import bare_environment, put_distribution
from world import folder as loose

TORCH = Path(__file__).with_name("standin_torch.py")


class Machine:
    """libraries: for LD_LIBRARY_PATH. target: the environment's folder, its framework a stand-in."""

    def __init__(self, folder: Path) -> None:
        self.libraries = loose.put(folder / "libraries", loose.COMPUTING)
        self.descriptions = folder
        self.target = make_target(folder / "target")

    def environment(self, gpus: int = 1, **shim: str) -> dict[str, str]:
        """Of a process on this machine, beside what ``cli.environment`` gives."""
        description = loose.describe(loose.h200(gpus), self.descriptions / str(gpus))
        return {
            **loose.variables(self.libraries, description),
            "SHIM_FAST": "950",
            "SHIM_SLOW": "20000",  # percent: time to take samples in
            **shim,
        }


def make_target(folder: Path, python: str = sys.executable) -> Path:
    packages = bare_environment(folder, python)
    (packages / "torch").mkdir()
    shutil.copy(TORCH, packages / "torch/__init__.py")
    put_distribution(packages, "torch", "2.9.0+standin", "torch/__init__.py")
    return folder
