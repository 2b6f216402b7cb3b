"""Diagnoses made by hand, for tests of the reports."""

from __future__ import annotations

from typing import Any

from build import Gpu, document, gpu_snapshot, snapshot
from made_findings import made_finding

from envcheck.facts.base import Unavailable
from envcheck.facts.evidence import Evidence
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel
from envcheck.facts.pci import Pci, PciDevice
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Environment, Framework, TargetInterpreter
from envcheck.findings.model import CheckResult, Diagnosis, Finding, Remedy, Unjudged
from envcheck.findings.subjects import about
from envcheck.reports.model import Report, build

# What facts may hold that a report must show as it is, and never act upon.
NASTY = "[bold red]boo[/] \x1b[31mred\x1b[0m \x07 a\tb [link=x]y[/link] :smile: ‮evil"

SHARED_MEMORY = (
    "docker run --gpus all --shm-size=8g --ulimit memlock=-1 --ulimit stack=67108864 "
    "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
)


def result(code: str, area: str, outcome: Any = "pass", **fields: Any) -> CheckResult:
    fields.setdefault("title", f"Title of {code}")
    return CheckResult(code=code, area=area, outcome=outcome, **fields)


def finding(message: str, level: Any = "fail", subject: str = "", **fields: Any) -> Finding:
    return made_finding(level=level, message=message, subjects=about("file", subject), **fields)


def could_not_run(code: str, area: str, reason: str, **fields: Any) -> CheckResult:
    gap = Unjudged("could-not-run", reason)
    return result(code, area, "could-not-run", reason=reason, unjudged=[gap], **fields)


def skipped(code: str, area: str, reason: str, needs_root: bool = False) -> CheckResult:
    gap = Unjudged(
        "skipped",
        reason,
        needs_root=needs_root,
        what=reason.partition(":")[0] if needs_root else "",
    )
    return result(code, area, "skipped", reason=reason, unjudged=[gap])


def consequence(code: str, area: str, of: str, message: str) -> CheckResult:
    return result(
        code,
        area,
        "skipped",
        reason=f"skipped because of {of}: {message}",
        consequence_of=of,
        findings=[finding(message)],
    )


def report_of(*results: CheckResult, facts: Snapshot | None = None) -> Report:
    return build(snapshot() if facts is None else facts, Diagnosis(list(results)))


def eight_gpus(**host: Any) -> Snapshot:
    """An eight-GPU machine with a TensorFlow 1 environment; names redacted."""
    addresses = [f"0000:{number:02x}:00.0" for number in range(8)]
    gpus = [
        Gpu(index=number, name="NVIDIA H100 80GB HBM3", pci_address=address)
        for number, address in enumerate(addresses)
    ]
    cards = [PciDevice(address=address, kind="gpu", device_id="10de:2330") for address in addresses]
    return gpu_snapshot(
        *gpus,
        host=Host(
            hostname="<host-1>",
            os_name="Ubuntu 22.04.4 LTS",
            architecture="x86_64",
            kernel="5.15.0-91-generic",
            glibc="2.35",
            memory_total_mib=2063000,
            **host,
        ),
        kernel=Kernel(driver_version="535.54.03", driver_flavour="open"),
        pci=Pci(devices=cards),
        target=document(
            "path:/home/<user-1>/tf",
            interpreter=TargetInterpreter(
                executable="/home/<user-1>/tf/bin/python",
                version="3.8.18",
                implementation="CPython",
                kind="virtualenv",
                prefix="/home/<user-1>/tf",
                base_prefix="/usr",
                architecture="x86_64",
            ),
            tensorflow=Framework(name="tensorflow", imported=True, version="1.15.5", gpus=[]),
            environment=Environment(variables={"CUDA_VISIBLE_DEVICES": "", "A": "b" * 90}),
        ),
    )


def no_gpu() -> Snapshot:
    absent = Unavailable(unavailable="absent")
    return snapshot(
        host=Host(os_name="Debian GNU/Linux 12 (bookworm)", architecture="x86_64"),
        pci=Pci(devices=[]),
        kernel=Kernel(driver_version=absent, modules=[]),
    )


def every_outcome() -> list[CheckResult]:
    """A result of each kind that the engine can make."""
    mismatch = finding(
        "The loaded kernel module is 535.54.03 and the libraries on disk are 535.86.10: nothing "
        "that uses CUDA starts until they agree.",
        evidence=[
            Evidence("machine.kernel.driver_version", "535.54.03", "/proc/driver/nvidia/version"),
            Evidence("machine.kernel.driver_files", "libcuda 535.86.10, " * 8, "/usr/lib"),
        ],
        remedy=Remedy("Reboot, or load the new module.", ["uptime", "sudo systemctl reboot"]),
    )
    broken_memory = [
        finding(
            "The GPU has uncorrectable memory errors: its results cannot be trusted.",
            subject=f"GPU {number}",
            evidence=[
                Evidence(f"machine.nvml.gpus[{number}].ecc_uncorrected_volatile", "3", "NVML")
            ],
            remedy=Remedy(
                "Reset the GPU.", ["sudo nvidia-bug-report.sh", "sudo nvidia-smi --gpu-reset"]
            ),
        )
        for number in (1, 5)
    ]
    small = finding(
        "/dev/shm holds 64 MiB: data loaders die with a bus error.",
        "warn",
        remedy=Remedy("Give the container more.", [SHARED_MEMORY]),
    )
    return [
        result("HOST-001", "host", detail="Ubuntu 22.04"),
        result("HOST-002", "host", "warn", findings=[small]),
        result("PCI-001", "pci"),
        skipped("KRN-009", "kernel", "kernel log: only root may read it", needs_root=True),
        skipped("KRN-010", "kernel", "kernel log: only root may read it", needs_root=True),
        consequence("DRV-001", "driver", "DRV-002", "NVML does not start [nvml] (18)."),
        result("DRV-002", "driver", "fail", findings=[mismatch]),
        could_not_run("DRV-004", "driver", "libcuda: no answer in time (10 s)"),
        result(
            "GPU-001",
            "gpu",
            "fail",
            findings=broken_memory,
            unjudged=[
                Unjudged("could-not-run", "ECC: the GPU did not answer", about("file", "GPU 3"))
            ],
        ),
        skipped("CTR-001", "container", "no container engine"),
        consequence("FRM-002", "framework", "DRV-002", "TensorFlow sees no GPU."),
        result("FRM-001", "framework"),
        result("ENV-001", "environment"),
    ]
