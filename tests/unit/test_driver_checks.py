"""The checks on whether the driver answers."""

from __future__ import annotations

import h100
import pytest
from build import document, ok, snapshot
from h100 import (
    ABSENT,
    DRIVER,
    ERROR,
    file,
    gpu,
    kernel,
    machine,
    no_driver,
    smi,
)
from judged import assert_case, results
from msgspec.structs import replace

from envcheck.checks.engine import diagnose
from envcheck.facts.base import Probe, StuckProcess, Unavailable
from envcheck.facts.gpu import CudaDriver, NvidiaSmi, Nvml
from envcheck.facts.host import Host

STUCK_SMI = NvidiaSmi(
    path="/usr/bin/nvidia-smi",
    exit_code=Unavailable(unavailable="timeout"),
    stuck=[StuckProcess(pid=99, command="nvidia-smi -q -x", state="D")],
)

# (code, snapshot, outcome, words that the reader must see)
CASES = {
    # DRV-001
    "nvml library missing": ("DRV-001", machine(nvml=no_driver(12)), "fail", "libnvidia-ml"),
    "nvml module missing": ("DRV-001", machine(nvml=no_driver(9)), "fail", "modprobe nvidia"),
    "nvml no permission": ("DRV-001", machine(nvml=no_driver(4)), "fail", "device nodes"),
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
    "nvml without pynvml": (
        "DRV-001",
        machine(nvml=Nvml(init_code=ERROR)),
        "could-not-run",
        "it broke",
    ),
    "nvml hangs": (
        "DRV-001",
        machine(nvml=Probe(outcome="timeout", reason="the probe gave no answer within 12 s")),
        "could-not-run",
        "no answer within 12 s",
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
    "mismatch by nvml": (
        "DRV-002",
        machine(
            nvml=no_driver(18, "Driver/library version mismatch"),
            kernel=kernel(driver_files=[file("libnvidia-ml", "535.129.03")]),
        ),
        "fail",
        f"({DRIVER}) and driver libraries (535.129.03)",
    ),
    "mismatch by nvidia-smi": (
        "DRV-002",
        machine(
            nvml=ok(no_driver(999)),
            nvidia_smi=smi([], exit_code=18),
            kernel=Probe(outcome="crashed", reason="crashed"),
        ),
        "fail",
        "no program can use a GPU",
    ),
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
    "mismatch by files": (
        "DRV-002",
        machine(nvml=no_driver(1), kernel=kernel(driver_files=[file("libnvidia-ml", "550.54.15")])),
        "fail",
        "550.54.15",
    ),
    "a compat library is no mismatch": (
        "DRV-002",
        machine(
            nvml=no_driver(1),
            kernel=kernel(
                driver_files=[
                    file("libnvidia-ml", DRIVER),
                    file("libnvidia-ml", "550.54.15", "/usr/local/cuda/compat"),
                ]
            ),
        ),
        "pass",
        f"both are {DRIVER}",
    ),
    "compat, 32-bit and unnumbered files alone tell nothing": (
        "DRV-002",
        machine(
            nvml=no_driver(1),
            kernel=kernel(
                driver_files=[
                    file("libnvidia-ml", "550.54.15", "/usr/local/cuda/compat"),
                    file("libnvidia-ml", "550.54.15", "/usr/lib/i386-linux-gnu"),
                    file("libnvidia-ml", "1"),
                    file("libcuda", "550.54.15"),
                ]
            ),
        ),
        "skipped",
        "neither from NVML nor from a file",
    ),
    "no mismatch where nvml answers": (
        "DRV-002",
        machine(kernel=kernel(driver_files=[file("libnvidia-ml", "550.54.15")])),
        "pass",
        DRIVER,
    ),
    "no library known": (
        "DRV-002",
        machine(nvml=no_driver(1), kernel=kernel(driver_files=ABSENT)),
        "skipped",
        "neither from NVML nor from a file",
    ),
    "module version not known": (
        "DRV-002",
        machine(kernel=kernel(driver_version=ABSENT)),
        "skipped",
        "there is none here",
    ),
    "mismatch on WSL": (
        "DRV-002",
        machine(host=Host(wsl=True), nvml=no_driver(18)),
        "skipped",
        "WSL",
    ),
    # DRV-003
    "nvidia-smi missing": (
        "DRV-003",
        machine(nvidia_smi=NvidiaSmi(path=ABSENT, exit_code=ABSENT)),
        "warn",
        "nvidia-utils-535",
    ),
    "nvidia-smi and nvml missing": (
        "DRV-003",
        machine(nvidia_smi=NvidiaSmi(path=ABSENT), nvml=Probe(outcome="crashed", reason="x")),
        "skipped",
        "there is none here",
    ),
    "nvidia-smi fails, nvml works": (
        "DRV-003",
        machine(nvidia_smi=smi([], exit_code=14)),
        "warn",
        "infoROM",
    ),
    "nvidia-smi alone fails": (
        "DRV-003",
        snapshot(nvidia_smi=smi([], exit_code=6)),
        "fail",
        "exits with 6",
    ),
    "nvidia-smi dies": (
        "DRV-003",
        machine(nvidia_smi=smi([], exit_code=-11)),
        "warn",
        "signal 11",
    ),
    "nvidia-smi with an odd code": (
        "DRV-003",
        machine(nvidia_smi=smi([], exit_code=77)),
        "warn",
        "no documented meaning",
    ),
    "nvidia-smi sees a lost GPU": (
        "DRV-003",
        machine(nvidia_smi=smi([], exit_code=15)),
        "fail",
        "fallen off the bus",
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
    "nvidia-smi finds no devices": (
        "DRV-003",
        machine(
            nvidia_smi=NvidiaSmi(path="/usr/bin/nvidia-smi", exit_code=0, gpu_count=0, gpus=[])
        ),
        "pass",
        "/usr/bin/nvidia-smi",
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
    "nvidia-smi had no time to answer": (
        "DRV-003",
        machine(nvidia_smi=Probe(outcome="timeout", seconds=1.0, reason="no answer within 1 s")),
        "could-not-run",
        "no answer within 1 s",
    ),
    "NVML never answers": (
        "DRV-001",
        machine(nvml=Probe(outcome="timeout", seconds=12.0, reason="no answer within 12 s")),
        "fail",
        "never answers (no answer within 12 s)",
    ),
    "NVML had no time to answer": (
        "DRV-001",
        machine(nvml=Probe(outcome="timeout", seconds=1.0, reason="no answer within 1 s")),
        "could-not-run",
        "no answer within 1 s",
    ),
    "NVML crashes": (
        "DRV-001",
        machine(nvml=Probe(outcome="crashed", reason="the probe died by signal 11 (SIGSEGV)")),
        "fail",
        "crashes",
    ),
    "the NVML probe was killed": (
        "DRV-001",
        machine(nvml=Probe(outcome="crashed", reason="the probe died by signal 9 (SIGKILL)")),
        "could-not-run",
        "SIGKILL",
    ),
    "cuInit never comes back": (
        "DRV-004",
        machine(cuda=Probe(outcome="timeout", seconds=20.0, reason="no answer within 20 s")),
        "fail",
        "cuInit does not come back",
    ),
    "every GPU is prohibited": (
        "DRV-004",
        machine(
            [h100.gpu(n, compute_mode="Prohibited") for n in range(h100.COUNT)],
            cuda=CudaDriver(init_code=100, init_name="CUDA_ERROR_NO_DEVICE"),
        ),
        "skipped",
        "GPU-014",
    ),
    "nvidia-smi stuck in the kernel": (
        "DRV-003",
        machine(nvidia_smi=STUCK_SMI),
        "could-not-run",
        "no answer in time",
    ),
    # DRV-010
    "a program in the kernel": (
        "DRV-010",
        machine(nvidia_smi=STUCK_SMI),
        "fail",
        "nvidia-smi -q -x (process 99, state D)",
    ),
    "a probe in the kernel": (
        "DRV-010",
        machine(cuda=Probe(outcome="timeout", reason="no answer", stuck=STUCK_SMI.stuck)),
        "fail",
        "sudo cat /proc/99/stack",
    ),
    "a framework in the kernel": (
        "DRV-010",
        replace(
            machine(),
            target=document(tensorflow=Probe(outcome="timeout", stuck=STUCK_SMI.stuck)),
        ),
        "fail",
        "target.tensorflow.stuck",
    ),
    "a probe that was killed": (
        "DRV-010",
        machine(nvml=Probe(outcome="timeout", reason="no answer")),
        "pass",
        "came back",
    ),
    # DRV-011
    "a whole document": ("DRV-011", machine(), "pass", "complete"),
    "a document that was cut": (
        "DRV-011",
        machine(nvidia_smi=smi([gpu()], cut=True, gpu_count=8)),
        "warn",
        "in the middle of GPU 1 of 8",
    ),
    "a table": (
        "DRV-011",
        machine(nvidia_smi=smi([gpu()], form="table")),
        "skipped",
        "there is none",
    ),
}


@pytest.mark.parametrize(
    ("origin", "words"), [("live", "nvidia-smi -q -x | tail -3"), ("nvidia-smi", "nvidia-smi.txt")]
)
def test_who_can_bring_the_whole_document(origin: str, words: str) -> None:
    found = machine(nvidia_smi=smi([gpu()], cut=True))
    changed = replace(found.machine, origin=origin)
    told = results(replace(found, machine=changed), ("driver",))
    (finding,) = told["DRV-011"].findings
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
        told = "\n".join(finding.remedy.commands)
        assert words in told and "on the host: nvidia-smi" in told
        assert "modprobe" not in told and "reboot" not in told
