"""The checks on the host: what each says of a machine that is well but for these facts."""

from __future__ import annotations

from typing import Any

import h100
import networks
import pytest
from build import area_checks, document, snapshot
from judged import full_text
from msgspec.structs import replace
from whole import ABSENT, host

from envcheck.checks.engine import diagnose
from envcheck.facts.base import ProgramSetting
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel, KernelEvent
from envcheck.facts.snapshot import Document
from envcheck.facts.target import Framework
from envcheck.findings.model import CheckResult

STRICT = ProgramSetting(name="vm.overcommit_memory", value="2", source="/proc/sys/vm")
LOOSE = replace(STRICT, value="0")
USER = {"is_root": False, "cpus_allowed": 64}
FEW = {"memlock_kib": 8_192}
WAITS = "nfs: server 10.0.0.5 not responding, still trying"


def judge(code: str, seen: Host, **others: Any) -> CheckResult:
    found = diagnose(snapshot(host=seen, **others), checks=area_checks("host"))
    return {result.code: result for result in found.results}[code]


def with_disks(role: str = "", **facts: Any) -> Host:
    """These facts of the disks that have the role."""
    disks = host().disks
    assert isinstance(disks, list)
    return host(disks=[replace(d, **facts) if role in ["", *d.roles] else d for d in disks])


def framework(name: Any, version: str = "2.19.1") -> Document:
    probe = Framework(name=name, imported=True, version=version)
    return document("path:/env", **{name: probe})


@pytest.mark.parametrize(
    ("code", "facts", "outcome", "words"),
    [
        ("HOST-001", {"architecture": "aarch64"}, "pass", ""),
        ("HOST-001", {"architecture": "ppc64le"}, "pass", ""),
        ("HOST-001", {"architecture": "i686"}, "fail", ""),
        ("HOST-003", {"libc": "musl", "glibc": ABSENT}, "fail", ""),
        ("HOST-003", {"glibc": "2.17"}, "pass", "TensorFlow 2.20.0 is the newest"),
        ("HOST-003", {"glibc": "2.12"}, "fail", ""),
        ("HOST-004", {"memory_total_mib": 2_000}, "warn", ""),
        ("HOST-004", {"cgroup_memory_limit_mib": 2_048}, "warn", "control group"),
        ("HOST-004", {"cgroup_memory_limit_mib": 99_999}, "pass", ""),
        ("HOST-004", {"settings": [STRICT], "committed_mib": 63_900}, "warn", ""),
        ("HOST-004", {"settings": [STRICT], "committed_mib": 20_000}, "pass", ""),
        ("HOST-004", {"settings": [LOOSE], "committed_mib": 63_900}, "pass", ""),
        ("HOST-009", {"open_files": 256}, "warn", ""),
        ("HOST-009", USER | {"processes": 4096}, "warn", ""),
        ("HOST-009", USER | {"processes": 4096, "is_root": True}, "pass", ""),
        ("HOST-009", USER | {"processes": 4096, "cpus_allowed": 8}, "pass", ""),
        ("HOST-009", USER | {"processes": -1}, "pass", ""),
        ("HOST-011", {"cpus_allowed": 1}, "warn", ""),
        ("HOST-011", {"cpus_allowed": 8}, "pass", ""),
        ("HOST-011", {"cgroup_cpu_limit": 0.5}, "warn", ""),
        ("HOST-011", {"cpus_allowed": 1, "cpus_present": 1}, "pass", ""),
    ],
)
def test_what_is_said_of_a_fact(code: str, facts: dict[str, Any], outcome: str, words: str) -> None:
    seen = host(**{"commit_limit_mib": 64_000, "cpus_present": 64} | facts)
    result = judge(code, seen, nvml=h100.nvml([h100.gpu(0)]))
    assert result.outcome == outcome and words in full_text(result)


def test_no_avx_on_bare_metal_has_another_remedy() -> None:
    seen = host(cpu_flags=[], hypervisor=ABSENT)
    assert judge("HOST-002", seen).findings[0].remedy.commands == []  # type: ignore[union-attr]


# disks


def test_too_little_room_for_an_environment() -> None:
    result = judge("HOST-005", with_disks(free_mib=8_000))
    assert result.outcome == "warn"
    (finding,) = result.findings  # one file system, one finding
    assert "8.4 GB free" in finding.message
    assert "9.6 GB" in finding.message
    assert finding.evidence[0].fact == "machine.host.disks[0].free_mib"


@pytest.mark.parametrize(("free", "outcome"), [(500, "pass"), (5, "fail")])
def test_a_target_with_a_framework_needs_no_more_room(free: int, outcome: str) -> None:
    seen = with_disks(free_mib=free)
    assert judge("HOST-005", seen, target=framework("tensorflow")).outcome == outcome


def test_a_disk_without_room_for_another_file() -> None:
    full = with_disks("temporary", free_inodes=0, mount_point="/tmp")
    (finding,) = judge("HOST-005", full).findings
    assert finding.level == "fail"
    assert "room for 0 files more" in finding.message
    assert finding.remedy is not None and finding.remedy.commands[0].startswith("df -i")


@pytest.mark.parametrize(
    ("target", "outcome"),
    [(framework("torch", "2.6.0+cu124"), "warn"), (framework("torch", "1.13.1"), "pass"), (None, "pass")],
)  # fmt: skip
def test_temporary_files_that_cannot_be_executed(target: Document | None, outcome: str) -> None:
    seen = with_disks("temporary", noexec=True, mount_point="/tmp")
    assert judge("HOST-005", seen, target=target).outcome == outcome


@pytest.mark.parametrize(
    ("code", "role", "facts", "outcome"),
    [
        ("HOST-005", "temporary", {"read_only": True, "mount_point": "/"}, "fail"),
        ("HOST-005", "temporary", {"writable": False}, "fail"),
        ("HOST-005", "home", {"read_only": True, "mount_point": "/home"}, "warn"),
        ("HOST-005", "home", {"read_only": True}, "pass"),  # of an image-based system
        ("HOST-005", "home", {"writable": False, "mount_point": "/home"}, "pass"),
        ("HOST-007", "home", {"network": True, "filesystem": "nfs4"}, "pass"),
    ],
)
def test_a_directory_s_disk(code: str, role: str, facts: Any, outcome: str) -> None:
    assert judge(code, with_disks(role, **facts)).outcome == outcome


@pytest.mark.parametrize(
    ("kind", "code", "last", "outcome"),
    [
        ("file-server", "HOST-007", WAITS, "warn"),
        ("file-server", "HOST-007", "nfs: server 10.0.0.5 OK", "pass"),
        ("read-only", "HOST-005", "EXT4-fs (sdb1): Remounting filesystem read-only", "warn"),
    ],
)
def test_disks_in_the_kernel_log(kind: Any, code: str, last: str, outcome: str) -> None:
    log = [KernelEvent(kind=kind, text=text) for text in (WAITS, last)]
    assert judge(code, host(), kernel=Kernel(log=log)).outcome == outcome


# limits


@pytest.mark.parametrize(
    ("facts", "network", "outcome"),
    [
        (FEW, networks.infiniband(), "warn"),
        (FEW, networks.desktop(), "pass"),
        (FEW | {"is_root": True}, networks.infiniband(), "pass"),  # which is not held to it
        ({"memlock_kib": -1}, networks.infiniband(), "pass"),
    ],
)
def test_locked_memory_for_rdma(facts: dict[str, Any], network: Any, outcome: str) -> None:
    seen = host(rdma_devices=ABSENT, **facts)
    assert judge("HOST-009", seen, network=network).outcome == outcome


@pytest.mark.parametrize(
    ("gpus", "mib", "outcome"), [(1, 1, "warn"), (1, 64, "pass"), (2, 512, "warn")]
)
def test_shared_memory_by_how_many_gpus_there_are(gpus: int, mib: int, outcome: str) -> None:
    seen = host(shm_total_mib=mib, memory_total_mib=64_000)
    listed = h100.nvml([h100.gpu(n) for n in range(gpus)])
    assert judge("HOST-008", seen, nvml=listed).outcome == outcome
