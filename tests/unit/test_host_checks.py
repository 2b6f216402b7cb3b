"""The checks on the host: healthy machines pass, and each fault gives its own finding."""

from __future__ import annotations

from typing import Any

import h100
import networks
import pytest
from build import area_checks, document, snapshot
from msgspec.structs import replace

from envcheck.checks.engine import diagnose
from envcheck.facts.base import ProgramSetting, Unavailable
from envcheck.facts.host import Disk, Host
from envcheck.facts.kernel import Kernel, KernelEvent
from envcheck.facts.network import Network
from envcheck.facts.target import Framework
from envcheck.findings.model import CheckResult

ABSENT = Unavailable(unavailable="absent")
CHECKS = area_checks("host")


def disk(path: str, *roles: str, **facts: Any) -> Disk:
    healthy: dict[str, Any] = {
        "filesystem": "ext4",
        "mount_point": "/",
        "network": False,
        "noexec": False,
        "read_only": False,
        "free_mib": 100_000,
        "total_mib": 200_000,
        "free_inodes": 5_000_000,
        "writable": True,
    }
    return Disk(path=path, roles=list(roles), **{**healthy, **facts})


DISKS = [
    disk("/home/ada", "home"),
    disk("/home/ada/.cache", "cache"),
    disk("/home/ada/.local/share/envcheck", "environments"),
    disk("/tmp", "temporary"),
]

# A fresh Debian 12 virtual machine.
DEBIAN = Host(
    os_id="debian",
    architecture="x86_64",
    libc="glibc",
    glibc="2.36",
    cpu_model="Intel(R) Xeon(R) Processor",
    cpu_flags=["avx", "avx2", "avx512f"],
    memory_total_mib=16_000,
    cgroup_memory_limit_mib=ABSENT,
    shm_total_mib=8_000,
    memlock_kib=8_192,
    open_files=1_024,
    container=ABSENT,
    hypervisor="kvm",
    wsl=False,
    secure_boot=ABSENT,
    lockdown="none",
    selinux=ABSENT,
    rdma_devices=ABSENT,
    disks=DISKS,
)


def results(host: Host | None, **others: Any) -> dict[str, CheckResult]:
    machine = {} if host is None else {"host": host}
    diagnosis = diagnose(snapshot(**machine, **others), checks=CHECKS)
    return {result.code: result for result in diagnosis.results}


def judge(code: str, host: Host, **others: Any) -> CheckResult:
    return results(host, **others)[code]


def with_disk(role: str, **facts: Any) -> Host:
    disks = [replace(d, **facts) if role in d.roles else d for d in DISKS]
    return replace(DEBIAN, disks=disks)


@pytest.mark.parametrize(
    ("architecture", "outcome"), [("aarch64", "pass"), ("ppc64le", "pass"), ("i686", "fail")]
)
def test_architecture(architecture: str, outcome: str) -> None:
    assert judge("HOST-001", replace(DEBIAN, architecture=architecture)).outcome == outcome


def test_no_avx_on_bare_metal_has_another_remedy() -> None:
    host = replace(DEBIAN, cpu_flags=[], hypervisor=ABSENT)
    assert judge("HOST-002", host).findings[0].remedy.commands == []  # type: ignore[union-attr]


def test_musl() -> None:
    assert judge("HOST-003", replace(DEBIAN, libc="musl", glibc=ABSENT)).outcome == "fail"


def test_little_memory() -> None:
    assert judge("HOST-004", replace(DEBIAN, memory_total_mib=2_000)).outcome == "warn"


def test_the_control_group_counts_as_memory() -> None:
    result = judge("HOST-004", replace(DEBIAN, cgroup_memory_limit_mib=2_048))
    assert result.outcome == "warn"
    assert "control group" in result.findings[0].message
    assert judge("HOST-004", replace(DEBIAN, cgroup_memory_limit_mib=99_999)).outcome == "pass"


@pytest.mark.parametrize(
    ("value", "committed", "outcome"),
    [("2", 63_900, "warn"), ("2", 20_000, "pass"), ("0", 63_900, "pass")],
)
def test_strict_overcommit(value: str, committed: int, outcome: str) -> None:
    strict = ProgramSetting(name="vm.overcommit_memory", value=value, source="/proc/sys/vm")
    changes = {"settings": [strict], "commit_limit_mib": 64_000, "committed_mib": committed}
    assert judge("HOST-004", replace(DEBIAN, **changes)).outcome == outcome


# disks


def test_too_little_room_for_an_environment() -> None:
    host = replace(DEBIAN, disks=[replace(d, free_mib=8_000) for d in DISKS])
    result = judge("HOST-005", host)
    assert result.outcome == "warn"
    (finding,) = result.findings  # one file system, one finding
    assert "8.4 GB free" in finding.message
    assert "9.6 GB" in finding.message
    assert finding.evidence[0].fact == "machine.host.disks[0].free_mib"


def test_a_target_with_a_framework_needs_no_more_room() -> None:
    target = document("path:/env", tensorflow=Framework(name="tensorflow", imported=True))
    host = replace(DEBIAN, disks=[replace(d, free_mib=500) for d in DISKS])
    assert judge("HOST-005", host, target=target).outcome == "pass"
    full = replace(DEBIAN, disks=[replace(d, free_mib=5) for d in DISKS])
    assert judge("HOST-005", full, target=target).outcome == "fail"


def test_a_disk_without_room_for_another_file() -> None:
    (finding,) = judge(
        "HOST-005", with_disk("temporary", free_inodes=0, mount_point="/tmp")
    ).findings
    assert finding.level == "fail"
    assert "room for 0 files more" in finding.message
    assert finding.remedy is not None and finding.remedy.commands[0].startswith("df -i")


@pytest.mark.parametrize(("version", "outcome"), [("2.6.0+cu124", "warn"), ("1.13.1", "pass")])
def test_temporary_files_that_cannot_be_executed(version: str, outcome: str) -> None:
    target = document("path:/env", torch=Framework(name="torch", imported=True, version=version))
    host = with_disk("temporary", noexec=True, mount_point="/tmp")
    assert judge("HOST-005", host, target=target).outcome == outcome
    assert judge("HOST-005", host).outcome == "pass"


def test_a_network_home_alone_is_no_finding() -> None:
    host = with_disk("home", mount_point="/home", filesystem="nfs4", network=True)
    assert judge("HOST-007", host).outcome == "pass"


@pytest.mark.parametrize(
    ("role", "facts", "outcome"),
    [
        ("temporary", {"read_only": True, "mount_point": "/"}, "fail"),
        ("temporary", {"writable": False}, "fail"),
        ("home", {"read_only": True, "mount_point": "/home"}, "warn"),
        ("home", {"read_only": True, "mount_point": "/"}, "pass"),  # of an image-based system
        ("home", {"writable": False, "mount_point": "/home"}, "pass"),
    ],
)
def test_directories_that_cannot_be_written(role: str, facts: Any, outcome: str) -> None:
    assert judge("HOST-005", with_disk(role, **facts)).outcome == outcome


@pytest.mark.parametrize(
    ("kind", "code", "last", "outcome"),
    [
        ("file-server", "HOST-007", "nfs: server 10.0.0.5 not responding, still trying", "warn"),
        ("file-server", "HOST-007", "nfs: server 10.0.0.5 OK", "pass"),
        ("read-only", "HOST-005", "EXT4-fs (sdb1): Remounting filesystem read-only", "warn"),
    ],
)
def test_disks_in_the_kernel_log(kind: Any, code: str, last: str, outcome: str) -> None:
    lines = ["nfs: server 10.0.0.5 not responding, still trying", last]
    log = [KernelEvent(kind=kind, text=text) for text in lines]
    assert judge(code, DEBIAN, kernel=Kernel(log=log)).outcome == outcome


# limits


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"cpus_allowed": 1}, "warn"),
        ({"cpus_allowed": 8}, "pass"),
        ({"cgroup_cpu_limit": 0.5}, "warn"),
        ({"cpus_allowed": 1, "cpus_present": 1}, "pass"),
    ],
)
def test_cpus_that_feed_the_gpus(changes: dict[str, Any], outcome: str) -> None:
    host = replace(DEBIAN, **{"cpus_present": 64, **changes})
    assert results(host, nvml=h100.nvml([h100.gpu(0)]))["HOST-011"].outcome == outcome


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"open_files": 256}, "warn"),
        ({"processes": 4096, "cpus_allowed": 64, "is_root": False}, "warn"),
        ({"processes": 4096, "cpus_allowed": 64, "is_root": True}, "pass"),
        ({"processes": 4096, "cpus_allowed": 8, "is_root": False}, "pass"),
        ({"processes": -1, "cpus_allowed": 64, "is_root": False}, "pass"),
    ],
)
def test_limits_on_processes(changes: dict[str, Any], outcome: str) -> None:
    assert judge("HOST-009", replace(DEBIAN, **changes)).outcome == outcome


@pytest.mark.parametrize(
    ("changes", "network", "outcome"),
    [
        ({"is_root": False}, networks.infiniband(), "warn"),
        ({"is_root": False}, networks.desktop(), "pass"),
        ({"is_root": True}, networks.infiniband(), "pass"),  # which is not held to it
        ({"is_root": False, "memlock_kib": -1}, networks.infiniband(), "pass"),
    ],
)
def test_locked_memory_for_rdma(changes: dict[str, Any], network: Network, outcome: str) -> None:
    assert judge("HOST-009", replace(DEBIAN, **changes), network=network).outcome == outcome


@pytest.mark.parametrize(
    ("gpus", "mib", "outcome"), [(1, 1, "warn"), (1, 64, "pass"), (2, 512, "warn")]
)
def test_shared_memory_by_how_many_gpus_there_are(gpus: int, mib: int, outcome: str) -> None:
    host = replace(DEBIAN, shm_total_mib=mib, memory_total_mib=64_000)
    listed = h100.nvml([h100.gpu(n) for n in range(gpus)])
    assert results(host, nvml=listed)["HOST-008"].outcome == outcome


def test_an_older_glibc_names_what_fits() -> None:
    result = judge("HOST-003", replace(DEBIAN, glibc="2.17"))
    assert result.outcome == "pass" and "TensorFlow 2.20.0 is the newest" in result.detail
    assert judge("HOST-003", replace(DEBIAN, glibc="2.12")).outcome == "fail"
