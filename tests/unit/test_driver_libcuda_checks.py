"""The checks on cuInit and on the libcuda that is found."""

from __future__ import annotations

import pytest
from build import snapshot
from h100 import (
    ABSENT,
    DRIVER,
    ERROR,
    cuda,
    file,
    gpu,
    kernel,
    machine,
)
from judged import assert_case

from envcheck.facts.base import Probe
from envcheck.facts.gpu import CudaDriver
from envcheck.facts.host import Host
from envcheck.facts.kernel import DeviceNode, DriverPackage, Service

# (code, snapshot, outcome, words that the reader must see)
CASES = {
    # DRV-004
    "cuInit without uvm": (
        "DRV-004",
        machine(cuda=cuda([], init_code=999), kernel=kernel(device_nodes=[])),
        "fail",
        "nvidia-modprobe -c 0 -u",
    ),
    "cuInit with uvm closed to the user": (
        "DRV-004",
        machine(
            cuda=cuda([], init_code=999),
            kernel=kernel(
                device_nodes=[
                    DeviceNode(
                        path="/dev/nvidia-uvm",
                        mode="0660",
                        owner="root",
                        group="vglusers",
                        usable=False,
                    )
                ]
            ),
        ),
        "fail",
        "usermod -aG vglusers",
    ),
    "cuInit unknown, all nodes there": (
        "DRV-004",
        machine(cuda=cuda([], init_code=999)),
        "fail",
        "modprobe -r nvidia_uvm",
    ),
    "cuInit unknown, nobody looked at nodes": (
        "DRV-004",
        snapshot(cuda=cuda([], init_code=999)),
        "fail",
        "CUDA_ERROR_UNKNOWN",
    ),
    "cuInit unknown in a container": (
        "DRV-004",
        machine(cuda=cuda([], init_code=999), host=Host(container="docker")),
        "fail",
        "Create the container again",
    ),
    "cuInit without fabric manager": (
        "DRV-004",
        machine(
            cuda=cuda([], init_code=802),
            kernel=kernel(
                services=[Service(name="nvidia-fabricmanager", installed=False, running=False)]
            ),
        ),
        "fail",
        "nvidia-fabricmanager is not installed",
    ),
    "cuInit not ready, service not known": (
        "DRV-004",
        snapshot(cuda=cuda([], init_code=802)),
        "fail",
        "fabric is not set up",
    ),
    "cuInit system mismatch": (
        "DRV-004",
        machine(cuda=cuda([], init_code=803)),
        "fail",
        "803",
    ),
    "cuInit no device": (
        "DRV-004",
        machine(cuda=cuda([], init_code=100)),
        "fail",
        "no device",
    ),
    "cuInit with a code of its own": (
        "DRV-004",
        machine(cuda=cuda([], init_code=4242, init_name="CUDA_ERROR_NEW")),
        "fail",
        "CUDA_ERROR_NEW",
    ),
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
    "libcuda where the loader does not look": (
        "DRV-004",
        machine(
            cuda=CudaDriver(library_path=ABSENT, init_code=ABSENT),
            kernel=kernel(driver_files=[file("libcuda", DRIVER, "/usr/lib64/nvidia")]),
        ),
        "fail",
        "echo /usr/lib64/nvidia | sudo tee /etc/ld.so.conf.d/",
    ),
    "libcuda missing in a container": (
        "DRV-004",
        machine(cuda=CudaDriver(library_path=ABSENT), host=Host(container="podman")),
        "fail",
        "NVIDIA_DRIVER_CAPABILITIES",
    ),
    "libcuda missing on WSL 1": (
        "DRV-004",
        machine(
            cuda=CudaDriver(library_path=ABSENT),
            host=Host(wsl=True, kernel="4.4.0-22621-Microsoft"),
        ),
        "fail",
        "wsl.exe --set-version DISTRIBUTION 2",
    ),
    "libcuda missing on WSL": (
        "DRV-004",
        machine(cuda=CudaDriver(library_path=ABSENT), host=Host(wsl=True)),
        "fail",
        "driver in Windows",
    ),
    "libcuda crashes": (
        "DRV-004",
        machine(cuda=Probe(outcome="crashed", reason="the probe died by signal 11 (SIGSEGV)")),
        "fail",
        "crashes",
    ),
    "libcuda probe of envcheck crashes": (
        "DRV-004",
        machine(cuda=Probe(outcome="crashed", reason="the probe exited with status 1")),
        "could-not-run",
        "exited with status 1",
    ),
    "libcuda could not be asked": (
        "DRV-004",
        machine(cuda=CudaDriver(init_code=ERROR)),
        "could-not-run",
        "it broke",
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
    "libcuda leads to a stub": (
        "DRV-005",
        machine(cuda=cuda([], library_real_path="/usr/local/cuda/lib64/stubs/libcuda.so")),
        "fail",
        "stubs/libcuda.so",
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
    "libcuda from compat, works": (
        "DRV-005",
        machine(
            cuda=cuda(
                [],
                library_path="/usr/local/cuda-12.4/compat/libcuda.so.1",
                library_real_path="/usr/local/cuda-12.4/compat/libcuda.so.550.54.15",
            )
        ),
        "pass",
        "550.54.15",
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
    "libcuda from a compat of the driver's version": (
        "DRV-005",
        machine(
            cuda=cuda(
                [],
                library_path="/usr/local/cuda/compat/libcuda.so.1",
                library_real_path=f"/usr/local/cuda/compat/libcuda.so.{DRIVER}",
            )
        ),
        "pass",
        DRIVER,
    ),
    "libcuda not found is DRV-004's": (
        "DRV-005",
        machine(cuda=CudaDriver(library_path=ABSENT)),
        "skipped",
        "there is none here",
    ),
    "a directory named like compat is none": (
        "DRV-005",
        machine(
            cuda=cuda([], library_path="/home/x/compatible/libcuda.so.1", library_real_path=ABSENT)
        ),
        "pass",
        "compatible",
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
    "a container on WSL": (
        "DRV-009",
        machine([gpu(0)], host=Host(wsl=True, container="docker")),
        "skipped",
        "container",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    assert_case(*CASES[name])
