"""The checks on cuInit and on the libcuda that is found."""

from __future__ import annotations

import pytest
from build import snapshot
from h100 import ABSENT, cuda, gpu, kernel, machine
from judged import assert_case

from envcheck.facts.base import Probe
from envcheck.facts.gpu import CudaDriver
from envcheck.facts.host import Host
from envcheck.facts.kernel import DriverPackage

# (code, snapshot, outcome, words that the reader must see)
CASES = {
    # DRV-004
    "cuInit unknown, all nodes there": (
        "DRV-004",
        machine(cuda=cuda([], init_code=999)),
        "fail",
        "modprobe -r nvidia_uvm",
    ),
    "cuInit unknown in a container": (
        "DRV-004",
        machine(cuda=cuda([], init_code=999), host=Host(container="docker")),
        "fail",
        "Create the container again",
    ),
    "cuInit not ready, service not known": (
        "DRV-004",
        snapshot(cuda=cuda([], init_code=802)),
        "fail",
        "fabric is not set up",
    ),
    "cuInit no device": ("DRV-004", machine(cuda=cuda([], init_code=100)), "fail", "no device"),
    "libcuda missing": (
        "DRV-004",
        machine(
            cuda=CudaDriver(library_path=ABSENT, init_code=ABSENT, load_error="no such file"),
            kernel=kernel(driver_files=[]),
        ),
        "fail",
        "libnvidia-compute-535",
    ),
    "libcuda on disk and not in the loader's cache": (
        "DRV-004",
        machine(cuda=CudaDriver(library_path=ABSENT, init_code=ABSENT)),
        "fail",
        "sudo ldconfig &&",
    ),
    "libcuda crashes": (
        "DRV-004",
        machine(cuda=Probe(outcome="crashed", reason="the probe died by signal 11 (SIGSEGV)")),
        "fail",
        "crashes",
    ),
    # DRV-005
    "libcuda is a stub": (
        "DRV-005",
        machine(
            cuda=cuda([], library_path="/usr/local/cuda/lib64/stubs/libcuda.so.1", init_code=34)
        ),
        "fail",
        "stub",
    ),
    "libcuda from compat, refused": (
        "DRV-005",
        machine(
            cuda=cuda(
                [],
                library_path="/usr/local/cuda-12.4/compat/libcuda.so.1",
                library_real_path="/usr/local/cuda-12.4/compat/libcuda.so.550.54.15",
                init_code=804,
            )
        ),
        "fail",
        "forward compatibility",
    ),
    "libcuda from an older compat": (
        "DRV-005",
        machine(
            cuda=cuda(
                [],
                library_path="/opt/cuda-compat-11-8/libcuda.so.1",
                library_real_path="/opt/cuda-compat-11-8/libcuda.so.520.61.05",
            )
        ),
        "warn",
        "520.61.05",
    ),
    # DRV-009
    "WSL with Windows' libcuda": (
        "DRV-009",
        machine(
            [gpu(0)],
            host=Host(wsl=True),
            cuda=cuda([gpu(0)], library_path="/usr/lib/wsl/lib/libcuda.so.1"),
        ),
        "pass",
        "/usr/lib/wsl/lib",
    ),
    "WSL with a Linux driver": (
        "DRV-009",
        machine(
            [gpu(0)],
            host=Host(wsl=True),
            cuda=cuda([], init_code=100),
            kernel=kernel(
                driver_packages=[
                    DriverPackage(manager="dpkg", name="libnvidia-compute-535", version="1")
                ]
            ),
        ),
        "fail",
        "libnvidia-compute-535",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    assert_case(*CASES[name])
