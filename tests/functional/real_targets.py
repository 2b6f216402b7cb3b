"""Real frameworks for tests marked slow: environments made once from the configured index, and kept.

ENVCHECK_TEST_TARGETS names the folder that holds them, by the names of TARGETS; without it they lie in the
user's cache. What cannot be had is a skip with its reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock
from processes import ran
from pythons import need

_MINUTES = 30


class Wanted(NamedTuple):
    """minor: of Python 3; 0 for the one that runs the tests. builds: it compiles Horovod."""

    minor: int
    requirements: tuple[str, ...]
    builds: bool = False


_TF_1 = ("tensorflow==1.15.5", "protobuf<3.21", "numpy<1.19", "h5py<3", "pillow")
_TF_2 = ("tensorflow-cpu==2.15.1", "numpy<2", "pillow")
TARGETS = {
    "tensorflow-1.15": Wanted(7, _TF_1),
    "tensorflow-2.15": Wanted(11, _TF_2),
    "tensorflow-2.15-cuda": Wanted(11, ("tensorflow==2.15.1", "numpy<2")),  # and with TensorRT
    "tensorflow-newest": Wanted(12, ("tensorflow-cpu", "numpy")),
    "torch": Wanted(0, ("torch", "numpy", "pillow")),
    "jax": Wanted(0, ("jax", "jaxlib")),
    "dali": Wanted(0, ("nvidia-dali-cuda120", "numpy", "pillow")),
    "horovod-1.15": Wanted(7, (*_TF_1, "horovod==0.28.1"), builds=True),
    "horovod-2.15": Wanted(11, (*_TF_2, "horovod==0.28.1"), builds=True),
}
_HOROVOD = {
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITH_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}


def real_target(name: str) -> Path:
    """The environment of that name, made where it is not there yet."""
    folder = _folder() / name
    with FileLock(f"{folder}.lock"):
        if not (folder / "bin" / "python").exists():
            _make(folder, TARGETS[name])
    return folder


def _folder() -> Path:
    given = os.environ.get("ENVCHECK_TEST_TARGETS")
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(given) if given else Path(cache, "envcheck-tests", "targets")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _make(folder: Path, wanted: Wanted) -> None:
    if wanted.builds and not all(shutil.which(name) for name in ("cmake", "g++", "make")):
        pytest.skip("cmake, g++ or make is missing, and Horovod has to be compiled")
    python = need(wanted.minor) if wanted.minor else sys.executable
    draft = folder.with_name(f"{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    environ = {**os.environ, **(_HOROVOD if wanted.builds else {})}
    plain = [one for one in wanted.requirements if not one.startswith("horovod")]
    steps = [[*plain, "wheel", "setuptools<70"]]
    if wanted.builds:
        steps.append(["--no-build-isolation", *wanted.requirements])
    subprocess.run([python, "-m", "venv", str(draft)], check=True)
    for step in steps:
        pip = [str(draft / "bin" / "python"), "-m", "pip", "install", "--quiet", *step]
        done = ran(pip, env=environ, text=True, timeout=_MINUTES * 60)
        if done.returncode:
            shutil.rmtree(draft)
            errors = (done.stderr.strip().splitlines() or ["no word"])[-1]
            pytest.skip(f"{folder.name} cannot be had from the configured index: {errors[:200]}")
    draft.rename(folder)
