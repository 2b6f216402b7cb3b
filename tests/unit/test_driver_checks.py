"""The checks on the driver: whether it answers, cuInit, libcuda, and whether all say the same of it."""

from __future__ import annotations

import pytest
from build import snapshot
from h100 import ABSENT, ERROR, cuda, gpu, kernel, machine, no_driver, nvml, smi
from judged import assert_case, results
from msgspec.structs import replace

from envcheck.checks.engine import diagnose
from envcheck.facts.base import Probe, StuckProcess, Unavailable
from envcheck.facts.gpu import CudaDriver, NvidiaSmi, Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import DriverFile, DriverPackage, Kernel
from envcheck.facts.target import Environment

STUCK_SMI = NvidiaSmi(
    path="/usr/bin/nvidia-smi",
    exit_code=Unavailable(unavailable="timeout"),
    stuck=[StuckProcess(pid=99, command="nvidia-smi -q -x", state="D")],
)

# (code, snapshot, outcome, words that the reader must see)
CASES = {
    # DRV-001
    "nvml library missing": ("DRV-001", machine(nvml=no_driver(12)), "fail", "libnvidia-ml"),
    "nvml unheard-of code": (
        "DRV-001",
        machine(nvml=no_driver(77, "Quantum Error")),
        "fail",
        "Quantum Error",
    ),
    "nvml in a container": (
        "DRV-001",
        machine(nvml=no_driver(999), host=Host(container="docker")),
        "fail",
        "--gpus all",
    ),
    "nvml stuck in the kernel": (
        "DRV-001",
        machine(
            nvml=Probe(
                outcome="timeout",
                reason="no answer",
                stuck=[StuckProcess(pid=42, command="python3", state="D")],
            )
        ),
        "fail",
        "NVML hangs in the kernel",
    ),
    # DRV-002
    "mismatch by its words": (
        "DRV-002",
        machine(
            nvml=no_driver(1),
            nvidia_smi=smi(
                [], exit_code=255, message="Failed: Driver/Library Version Mismatch\nNVML"
            ),
        ),
        "fail",
        "Driver/Library Version Mismatch",
    ),
    # DRV-003
    "nvidia-smi missing": (
        "DRV-003",
        machine(nvidia_smi=NvidiaSmi(path=ABSENT, exit_code=ABSENT)),
        "warn",
        "nvidia-utils-535",
    ),
    "nvidia-smi fails, nvml works": (
        "DRV-003",
        machine(nvidia_smi=smi([], exit_code=14)),
        "warn",
        "infoROM",
    ),
    "nvidia-smi talks nonsense": (
        "DRV-003",
        machine(
            nvidia_smi=NvidiaSmi(
                path="/opt/bin/nvidia-smi", exit_code=0, message="hello", gpus=ERROR
            )
        ),
        "warn",
        "not its document",
    ),
    "nvidia-smi is slow": (
        "DRV-003",
        machine(
            nvidia_smi=NvidiaSmi(
                path="/usr/bin/nvidia-smi",
                exit_code=Unavailable(unavailable="timeout", detail="10 s"),
                message="nvidia-smi gave no answer within 10 s",
            )
        ),
        "warn",
        "gave no answer within 10 s, though NVML answers",
    ),
    "nvidia-smi is cut off by the probe's deadline": (
        "DRV-003",
        machine(nvidia_smi=Probe(outcome="timeout", seconds=4.0, reason="no answer within 4 s")),
        "warn",
        "nvidia-smi gave no answer within 4 s, though NVML answers",
    ),
    "NVML never answers": (
        "DRV-001",
        machine(nvml=Probe(outcome="timeout", seconds=12.0, reason="no answer within 12 s")),
        "fail",
        "never answers (no answer within 12 s)",
    ),
    "NVML crashes": (
        "DRV-001",
        machine(nvml=Probe(outcome="crashed", reason="the probe died by signal 11 (SIGSEGV)")),
        "fail",
        "crashes",
    ),
    "cuInit never comes back": (
        "DRV-004",
        machine(cuda=Probe(outcome="timeout", seconds=20.0, reason="no answer within 20 s")),
        "fail",
        "cuInit does not come back",
    ),
    # DRV-010
    "a program in the kernel": (
        "DRV-010",
        machine(nvidia_smi=STUCK_SMI),
        "fail",
        "nvidia-smi -q -x (process 99, state D)",
    ),
    "a whole document": ("DRV-011", machine(), "pass", "complete"),
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


@pytest.mark.parametrize(
    ("origin", "words"), [("live", "nvidia-smi -q -x | tail -3"), ("nvidia-smi", "nvidia-smi.txt")]
)
def test_who_can_bring_the_whole_document(origin: str, words: str) -> None:
    found = machine(nvidia_smi=smi([gpu()], cut=True))
    changed = replace(found.machine, origin=origin)
    result = results(replace(found, machine=changed), ("driver",))
    (finding,) = result["DRV-011"].findings
    assert words in "; ".join(finding.remedy.commands)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    assert_case(*CASES[name])


def test_inside_a_container_no_module_is_reloaded() -> None:
    """It is the host's, and so are the libraries that an engine brings in."""
    for kind, words in (
        ("docker", "docker run"),
        ("podman", "podman run"),
        ("kubernetes", "kubectl"),
    ):
        snap = machine(nvml=no_driver(18), host=Host(container=kind))
        (result,) = (r for r in diagnose(snap).results if r.code == "DRV-002")
        (finding,) = result.findings
        assert finding.remedy is not None
        text = "\n".join(finding.remedy.commands)
        assert words in text and "on the host: nvidia-smi" in text
        assert "modprobe" not in text and "reboot" not in text


def test_a_system_container_with_a_driver_of_its_own() -> None:
    """Nothing is wrong on its host: the two have different versions for as long as both have their own."""
    path = "/usr/lib/libnvidia-ml.so.375.51"
    own = DriverFile(
        library="libnvidia-ml", path=path, real_path=path, version="375.51", mounted=False
    )
    kernel = Kernel(driver_version="375.39", driver_files=[own])
    snap = machine(nvml=no_driver(18), kernel=kernel, host=Host(container="lxc"))
    (result,) = (r for r in diagnose(snap).results if r.code == "DRV-002")
    (remedy,) = (finding.remedy for finding in result.findings)
    assert remedy is not None and "this container's own" in remedy.text
    assert "install exactly 375.39 here" in remedy.text
    assert "nvidia.runtime=true" in remedy.commands[0]


def test_a_variable_that_hides_gpus_is_one_problem() -> None:
    """In a container, the variables are judged without a target, too."""
    gpus = [gpu(0), gpu(1)]
    snap = machine(
        nvml=Nvml(init_code=0, gpu_count=2, gpus=gpus),
        cuda=replace(cuda(gpus), visible_devices="8"),
        environment=Environment(variables={"CUDA_VISIBLE_DEVICES": "8"}),
        host=Host(container="docker", wsl=False),
    )
    outcomes = {r.code: r for r in diagnose(snap).results}
    assert outcomes["ENV-001"].outcome == "fail"
    assert outcomes["DRV-007"].consequence_of == "ENV-001"
