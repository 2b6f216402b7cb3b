"""The checks that compare what NVML, nvidia-smi, PCI, CUDA and the table say."""

from __future__ import annotations

import pytest
from build import snapshot
from h100 import cuda, gpu, machine, no_driver, nvml, smi
from judged import assert_case

from envcheck.facts.host import Host

# (code, snapshot, outcome, words that the reader must see)
CASES = {
    # DRV-006
    "nvidia-smi tells another version": (
        "DRV-006",
        machine(nvidia_smi=smi([gpu(0)], gpu_count=8, driver_version="550.54.15")),
        "warn",
        "driver version",
    ),
    # DRV-007
    "a container has some of the GPUs": (
        "DRV-007",
        machine([gpu(0)], host=Host(container="docker")),
        "pass",
        "1 in CUDA",
    ),
    "a variable that ends at a number without a GPU": (
        "DRV-007",
        snapshot(nvml=nvml([gpu(0)]), cuda=cuda([gpu(0)], visible_devices="0,8")),
        "warn",
        "see 1 of 1 GPUs",
    ),
    # DRV-008
    "the first compatible driver": (
        "DRV-008",
        snapshot(nvml=nvml([gpu(0)], driver_version="450.80.02", cuda_version="11.0")),
        "pass",
        "CUDA 11.0; any 11.x",
    ),
    "an older libcuda in front": (
        "DRV-008",
        machine(nvml=nvml([gpu(0)], cuda_version="11.8")),
        "warn",
        "older driver's library",
    ),
    "a Windows driver": (
        "DRV-008",
        snapshot(nvidia_smi=smi([gpu(0, driver_model="WDDM")], driver_version="536.40")),
        "pass",
        "536.40",
    ),
    "no version": ("DRV-008", snapshot(nvml=no_driver(9)), "could-not-run", "the driver's version"),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    assert_case(*CASES[name])
