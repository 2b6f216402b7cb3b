"""The checks that compare what NVML, nvidia-smi, PCI, CUDA and the table say."""

from __future__ import annotations

import pytest
from build import snapshot
from h100 import (
    ABSENT,
    ADDRESSES,
    ERROR,
    cuda,
    gpu,
    kernel,
    machine,
    no_driver,
    nvml,
    pci_device,
    smi,
)
from judged import assert_case

from envcheck.facts.gpu import CudaDriver
from envcheck.facts.host import Host
from envcheck.facts.kernel import DriverPackage
from envcheck.facts.pci import Pci

# (code, snapshot, outcome, words that the reader must see)
CASES = {
    # DRV-006
    "nvidia-smi tells another version": (
        "DRV-006",
        machine(nvidia_smi=smi([gpu(0)], gpu_count=8, driver_version="550.54.15")),
        "warn",
        "driver version",
    ),
    "nvidia-smi tells another GPU": (
        "DRV-006",
        machine(nvidia_smi=smi([gpu(0, uuid="GPU-<uuid-77>")], gpu_count=8)),
        "warn",
        "uuid of GPU 0",
    ),
    "nvidia-smi rounds memory": (
        "DRV-006",
        machine(nvidia_smi=smi([gpu(n, memory_total_mib=81560) for n in range(8)])),
        "pass",
        "the same",
    ),
    "nvidia-smi is hotter": (
        "DRV-006",
        machine(nvidia_smi=smi([gpu(n, temperature_c=70) for n in range(8)])),
        "pass",
        "the same",
    ),
    "nvidia-smi has other memory": (
        "DRV-006",
        machine(nvidia_smi=smi([gpu(n, memory_total_mib=40960) for n in range(8)])),
        "warn",
        "memory_total_mib",
    ),
    "nvidia-smi does not know": (
        "DRV-006",
        machine(
            nvidia_smi=smi([gpu(n, mig_enabled=ABSENT) for n in range(8)], driver_version=ERROR)
        ),
        "pass",
        "the same",
    ),
    "nvidia-smi alone": ("DRV-006", snapshot(nvidia_smi=smi([gpu(0)])), "skipped", "NVML"),
    # DRV-007
    "the driver drops a GPU": (
        "DRV-007",
        machine(nvml=nvml([gpu(n) for n in range(7)]), cuda=cuda([gpu(n) for n in range(7)])),
        "fail",
        ADDRESSES[7],
    ),
    "the module leaves a GPU out": (
        "DRV-007",
        machine(
            nvml=nvml([gpu(n) for n in range(7)]),
            cuda=cuda([gpu(n) for n in range(7)]),
            kernel=kernel(driver_parameters={"ExcludedGpus": f'"{ADDRESSES[7]}"'}),
        ),
        "warn",
        "the module parameter ExcludedGpus",
    ),
    "CUDA drops a GPU": (
        "DRV-007",
        machine(cuda=cuda([gpu(n) for n in range(6)])),
        "fail",
        f"at {ADDRESSES[6]}, GPU 7",
    ),
    "CUDA drops a GPU and tells no address": (
        "DRV-007",
        machine(cuda=cuda([gpu(n, pci_address=ERROR) for n in range(7)])),
        "fail",
        "1 of them",
    ),
    "a GPU is handed to a guest": (
        "DRV-007",
        machine(
            [gpu(n) for n in range(7)],
            pci=Pci(
                devices=[
                    *[pci_device(a) for a in ADDRESSES[:7]],
                    pci_device(ADDRESSES[7], driver="vfio-pci"),
                    pci_device("0000:df:00.1", "audio", driver="snd_hda_intel"),
                ]
            ),
        ),
        "pass",
        "7 GPUs on the bus",
    ),
    "a GPU that no driver took is PCI-003's": (
        "DRV-007",
        machine(
            [gpu(n) for n in range(7)],
            pci=Pci(
                devices=[
                    *[pci_device(a) for a in ADDRESSES[:7]],
                    pci_device(ADDRESSES[7], driver=ABSENT),
                ]
            ),
        ),
        "pass",
        "7 GPUs on the bus",
    ),
    "a container has some of the GPUs": (
        "DRV-007",
        machine([gpu(0)], host=Host(container="docker")),
        "pass",
        "1 in CUDA",
    ),
    "WSL has no PCI": (
        "DRV-007",
        machine([gpu(0)], host=Host(wsl=True), pci=Pci(devices=[])),
        "pass",
        "1 in CUDA",
    ),
    "MIG hides GPUs from CUDA": (
        "DRV-007",
        machine(nvml=nvml([gpu(n, mig_enabled=True) for n in range(8)]), cuda=cuda([gpu(0)])),
        "pass",
        "8 GPUs on the bus",
    ),
    "CUDA does not start": (
        "DRV-007",
        machine(cuda=CudaDriver(init_code=999, devices=ERROR)),
        "pass",
        "DRV-004",
    ),
    "no NVML": ("DRV-007", machine(nvml=no_driver(9)), "could-not-run", "nvmlInit"),
    # DRV-008
    "an old driver": (
        "DRV-008",
        machine(nvml=nvml([gpu(0)], driver_version="418.43", cuda_version="10.1")),
        "warn",
        "CUDA 10.1 is the newest",
    ),
    "the first compatible driver": (
        "DRV-008",
        snapshot(nvml=nvml([gpu(0)], driver_version="450.80.02", cuda_version="11.0")),
        "pass",
        "CUDA 11.0; any 11.x",
    ),
    "an ancient driver": (
        "DRV-008",
        machine(nvml=nvml([gpu(0)], driver_version="340.108", cuda_version=ABSENT)),
        "warn",
        "older than CUDA 10.0",
    ),
    "a compat libcuda in front": (
        "DRV-008",
        snapshot(nvml=nvml([gpu(0, brand="GeForce")], cuda_version="12.8")),
        "warn",
        "forward-compatibility",
    ),
    "a compat libcuda in front, where it may be": (
        "DRV-008",
        snapshot(nvml=nvml([gpu(0)], cuda_version="12.8")),
        "pass",
        "535.104.05",
    ),
    "a compat libcuda in front, which starts": (
        "DRV-008",
        machine(nvml=nvml([gpu(0, brand="GeForce")], cuda_version="12.8")),
        "pass",
        "535.104.05",
    ),
    "a compat libcuda in front, which is refused": (
        "DRV-008",
        machine(
            nvml=nvml([gpu(0)], cuda_version="12.8"), cuda=cuda([], init_code=804, devices=ERROR)
        ),
        "warn",
        "forward-compatibility",
    ),
    "an older libcuda in front": (
        "DRV-008",
        machine(nvml=nvml([gpu(0)], cuda_version="11.8")),
        "warn",
        "older driver's library",
    ),
    "libcuda itself tells it": (
        "DRV-008",
        machine(cuda=cuda([gpu(0)], driver_api_version="11.8")),
        "warn",
        "CUDA 11.8",
    ),
    "a CUDA without a toolkit": (
        "DRV-008",
        snapshot(nvml=nvml([gpu(0)], driver_version="565.57.01", cuda_version="12.7")),
        "pass",
        "CUDA 12.6; any 12.x",
    ),
    "a driver before its toolkit": (
        "DRV-008",
        snapshot(nvml=nvml([gpu(0)], driver_version="550.40.07", cuda_version="12.4")),
        "pass",
        "550.40.07",
    ),
    "a driver beyond the table": (
        "DRV-008",
        snapshot(nvml=nvml([gpu(0)], driver_version="700.10.01", cuda_version="14.2")),
        "pass",
        "CUDA 14.2, as it reports itself",
    ),
    "a Windows driver": (
        "DRV-008",
        snapshot(nvidia_smi=smi([gpu(0, driver_model="WDDM")], driver_version="536.40")),
        "pass",
        "536.40",
    ),
    "a compat package installed": (
        "DRV-008",
        machine(
            kernel=kernel(
                driver_packages=[
                    DriverPackage(manager="dpkg", name="cuda-compat-12-8", version="1")
                ]
            )
        ),
        "pass",
        "cuda-compat-12-8",
    ),
    "a version like no other": (
        "DRV-008",
        snapshot(nvml=nvml([gpu(0)], driver_version="R535 (beta)")),
        "skipped",
        "not known",
    ),
    "no version": ("DRV-008", snapshot(nvml=no_driver(9)), "could-not-run", "the driver's version"),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    assert_case(*CASES[name])
