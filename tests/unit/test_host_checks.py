"""The checks on the host: healthy machines pass, and each fault gives its own finding."""

from __future__ import annotations

from typing import Any

import pytest
from build import area_checks, document, snapshot
from msgspec.structs import replace

from envcheck.checks.engine import diagnose
from envcheck.facts.base import NOT_COLLECTED, Unavailable
from envcheck.facts.gpu import Gpu, Nvml
from envcheck.facts.host import Disk, Host
from envcheck.facts.kernel import DeviceNode, Kernel
from envcheck.facts.pci import Pci, PciDevice
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
        "quota_free_mib": ABSENT,
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
    selinux_label=ABSENT,
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


def test_a_fresh_debian_has_no_finding() -> None:
    outcomes = {code: result.outcome for code, result in results(DEBIAN).items()}
    assert outcomes.pop("HOST-010") == "skipped"  # not in a container
    assert set(outcomes.values()) == {"pass"}
    assert len(outcomes) == 10


def test_a_snapshot_without_the_host_skips_them_all() -> None:
    assert {result.outcome for result in results(None).values()} == {"skipped"}


def test_facts_that_are_missing_are_no_failures() -> None:
    for reason in ("not-collected", "absent", "no-permission"):
        nothing = Unavailable(unavailable=reason)  # type: ignore[arg-type]
        fields = [name for name in Host.__struct_fields__ if name != "disks"]
        found = results(replace(DEBIAN, disks=[], **dict.fromkeys(fields, nothing)))
        assert {result.outcome for result in found.values()} <= {"skipped", "pass"}


@pytest.mark.parametrize(
    ("architecture", "outcome"),
    [("x86_64", "pass"), ("aarch64", "pass"), ("i686", "fail"), ("ppc64le", "fail")],
)
def test_architecture(architecture: str, outcome: str) -> None:
    assert judge("HOST-001", replace(DEBIAN, architecture=architecture)).outcome == outcome


def test_no_avx() -> None:
    result = judge("HOST-002", replace(DEBIAN, cpu_flags=["sse4_2"], cpu_model="QEMU CPU"))
    assert result.outcome == "fail"
    assert "no AVX on QEMU CPU" in result.findings[0].message
    assert result.findings[0].evidence[0].fact == "machine.host.cpu_flags"
    assert "host-passthrough" in result.findings[0].remedy.commands[0]  # type: ignore[union-attr]


def test_no_avx_on_bare_metal_has_another_remedy() -> None:
    host = replace(DEBIAN, cpu_flags=[], hypervisor=ABSENT)
    assert judge("HOST-002", host).findings[0].remedy.commands == []  # type: ignore[union-attr]


def test_avx_is_not_asked_of_arm() -> None:
    host = replace(DEBIAN, architecture="aarch64", cpu_flags=["asimd"])
    assert judge("HOST-002", host).outcome == "skipped"


def test_musl() -> None:
    assert judge("HOST-003", replace(DEBIAN, libc="musl", glibc=ABSENT)).outcome == "fail"


@pytest.mark.parametrize(
    ("glibc", "outcome", "word"),
    [
        ("2.12", "fail", "no TensorFlow in envcheck's tables installs here"),
        ("2.17", "warn", "the newest that installs here is 2.20.0"),
        ("2.26", "warn", "2.20.0"),
    ],
)
def test_an_old_glibc_names_what_fits(glibc: str, outcome: str, word: str) -> None:
    result = judge("HOST-003", replace(DEBIAN, glibc=glibc))
    assert result.outcome == outcome
    assert word in result.findings[0].message


@pytest.mark.parametrize(("glibc", "before"), [("2.27", True), ("2.28", True), ("2.29", False)])
def test_a_glibc_that_is_new_enough(glibc: str, before: bool) -> None:
    result = judge("HOST-003", replace(DEBIAN, glibc=glibc))
    assert result.outcome == "pass"
    assert ("before 22.01" in result.detail) is before


def test_a_glibc_that_makes_no_sense_is_not_judged() -> None:
    assert judge("HOST-003", replace(DEBIAN, glibc="new")).outcome == "skipped"


def test_little_memory() -> None:
    assert judge("HOST-004", replace(DEBIAN, memory_total_mib=2_000)).outcome == "warn"


def test_the_control_group_counts_as_memory() -> None:
    result = judge("HOST-004", replace(DEBIAN, cgroup_memory_limit_mib=2_048))
    assert result.outcome == "warn"
    assert "control group" in result.findings[0].message
    assert judge("HOST-004", replace(DEBIAN, cgroup_memory_limit_mib=99_999)).outcome == "pass"


# disks


def test_too_little_room_for_an_environment() -> None:
    host = replace(DEBIAN, disks=[replace(d, free_mib=8_000) for d in DISKS])
    result = judge("HOST-005", host)
    assert result.outcome == "warn"
    (finding,) = result.findings  # one file system, one finding
    assert "8.4 GB free" in finding.message
    assert "9.6 GB" in finding.message
    assert finding.evidence[0].fact == "machine.host.disks[0].free_mib"


def test_room_is_counted_by_file_system() -> None:
    host = with_disk("cache", mount_point="/scratch", free_mib=3_000)
    (finding,) = judge("HOST-005", host).findings
    assert finding.subject == "/scratch"
    assert "3.3 GB" in finding.message
    assert "export XDG_CACHE_HOME=" in finding.remedy.commands[-1]  # type: ignore[union-attr]
    assert judge("HOST-005", with_disk("cache", mount_point="/c", free_mib=3_200)).outcome == "pass"


def test_a_target_with_a_framework_needs_no_more_room() -> None:
    target = document("path:/env", tensorflow=Framework(name="tensorflow", imported=True))
    host = replace(DEBIAN, disks=[replace(d, free_mib=500) for d in DISKS])
    assert judge("HOST-005", host, target=target).outcome == "pass"
    full = replace(DEBIAN, disks=[replace(d, free_mib=5) for d in DISKS])
    assert judge("HOST-005", full, target=target).outcome == "fail"


def test_a_full_disk() -> None:
    host = with_disk("home", mount_point="/home", free_mib=0)
    result = judge("HOST-005", host)
    assert result.outcome == "fail"
    assert "/home (the home directory) is full" in result.findings[0].message


def test_a_quota_counts_as_room() -> None:
    host = replace(DEBIAN, disks=[replace(d, quota_free_mib=4_000) for d in DISKS])
    (finding,) = judge("HOST-005", host).findings
    assert "quota" in finding.message
    assert finding.evidence[0].fact.endswith("quota_free_mib")


def test_few_inodes() -> None:
    host = replace(DEBIAN, disks=[replace(d, free_inodes=20_000) for d in DISKS])
    assert judge("HOST-005", host).outcome == "warn"
    host = replace(DEBIAN, disks=[replace(d, free_inodes=10) for d in DISKS])
    assert judge("HOST-005", host).outcome == "fail"
    btrfs = replace(DEBIAN, disks=[replace(d, free_inodes=ABSENT) for d in DISKS])
    assert judge("HOST-005", btrfs).outcome == "pass"


def test_noexec_where_environments_go() -> None:
    result = judge("HOST-006", with_disk("environments", mount_point="/home", noexec=True))
    assert result.outcome == "fail"
    assert result.findings[0].remedy.commands == [
        'export XDG_DATA_HOME="${DIRECTORY:?one on another disk}"'
    ]  # type: ignore[union-attr]


def test_noexec_where_the_target_is() -> None:
    host = replace(DEBIAN, disks=[*DISKS, disk("/env", "target", mount_point="/env", noexec=True)])
    assert judge("HOST-006", host).outcome == "fail"


def test_noexec_temporary_files_are_no_finding() -> None:
    result = judge("HOST-006", with_disk("temporary", noexec=True))
    assert result.outcome == "pass"
    assert "noexec" in result.detail


@pytest.mark.parametrize(
    ("role", "facts", "outcome"),
    [
        ("temporary", {"writable": False}, "fail"),
        ("temporary", {"read_only": True}, "fail"),
        ("environments", {"writable": False}, "warn"),
        ("cache", {"read_only": True}, "warn"),
        ("home", {"writable": False}, "pass"),
    ],
)
def test_places_that_cannot_be_written(role: str, facts: dict[str, Any], outcome: str) -> None:
    assert judge("HOST-006", with_disk(role, **facts)).outcome == outcome


def test_a_network_file_system_is_how_clusters_are_built() -> None:
    result = judge(
        "HOST-007", with_disk("cache", mount_point="/n", filesystem="nfs4", network=True)
    )
    assert result.outcome == "pass" and "nfs4, a network file system" in result.detail


def test_a_network_home_alone_is_no_finding() -> None:
    host = with_disk("home", mount_point="/home", filesystem="nfs4", network=True)
    assert judge("HOST-007", host).outcome == "pass"


def test_a_windows_drive_in_wsl() -> None:
    host = with_disk("cache", mount_point="/mnt/c", filesystem="9p")
    assert judge("HOST-007", host).outcome == "pass"
    (finding,) = judge("HOST-007", replace(host, wsl=True)).findings
    assert "Windows drive" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ['export XDG_CACHE_HOME="${DIRECTORY:?one on a local disk}"']


def test_a_mount_that_does_not_answer_is_the_one_failure() -> None:
    hung = Unavailable(unavailable="timeout", detail="statvfs gave no answer within 1.5 s")
    names = ("free_mib", "total_mib", "free_inodes", "writable", "read_only", "noexec")
    dead = {
        **dict.fromkeys(names, hung),
        "mount_point": "/n",
        "filesystem": "nfs",
        "network": False,
    }
    found = results(with_disk("cache", **dead))
    assert [code for code, result in found.items() if result.outcome == "fail"] == ["HOST-007"]
    assert "does not answer" in found["HOST-007"].findings[0].message
    assert found["HOST-005"].consequence_of == "HOST-007"
    assert found["HOST-006"].consequence_of == "HOST-007"


# limits


def test_the_default_shared_memory_of_a_container() -> None:
    host = replace(DEBIAN, container="docker", shm_total_mib=64)
    result = judge("HOST-008", host)
    assert result.outcome == "warn"
    assert "--shm-size" in result.findings[0].remedy.commands[0]  # type: ignore[union-attr]
    assert judge("HOST-008", replace(host, shm_total_mib=1_024)).outcome == "pass"
    assert judge("HOST-008", replace(DEBIAN, shm_total_mib=64)).outcome == "pass"


@pytest.mark.parametrize(
    ("changes", "gpus", "outcome"),
    [
        ({"shm_total_mib": 256}, 8, "warn"),
        ({"shm_total_mib": 64}, 2, "warn"),
        ({"shm_total_mib": 0}, 8, "pass"),  # tmpfs with size=0 has no limit
        ({"shm_total_mib": 0, "container": "podman"}, 8, "pass"),
        ({"shm_total_mib": 256}, 1, "pass"),
        ({"shm_total_mib": 256}, 0, "pass"),
        ({"shm_total_mib": 1_024}, 8, "pass"),
        ({"shm_total_mib": 2_000, "memory_total_mib": 2_000_000}, 8, "pass"),  # a hardening guide's
        ({"shm_total_mib": 500, "memory_total_mib": 1_000}, 2, "pass"),
        ({"shm_total_mib": 256, "container": "docker"}, 8, "pass"),  # was asked for
        ({"shm_total_mib": 256, "container": NOT_COLLECTED}, 8, "pass"),
        ({"shm_total_mib": 256, "memory_total_mib": ABSENT}, 8, "pass"),
        ({"shm_total_mib": ABSENT}, 8, "skipped"),
    ],
)
def test_a_machine_whose_shared_memory_was_made_small(
    changes: dict[str, Any], gpus: int, outcome: str
) -> None:
    found = Nvml(gpus=[Gpu(uuid=f"GPU-{n}") for n in range(gpus)])
    result = results(replace(DEBIAN, **changes), nvml=found)["HOST-008"]
    assert result.outcome == outcome
    if outcome == "warn":
        assert f"{gpus} GPUs" in result.findings[0].message
        assert "remount" in result.findings[0].remedy.commands[0]  # type: ignore[union-attr]


def test_locked_memory_matters_in_a_container_with_rdma_alone() -> None:
    container = replace(DEBIAN, container="docker", memlock_kib=64)
    assert judge("HOST-009", container).outcome == "pass"
    assert judge("HOST-009", replace(DEBIAN, rdma_devices=["mlx5_0"])).outcome == "pass"
    result = judge("HOST-009", replace(container, rdma_devices=["mlx5_0"]))
    assert result.outcome == "warn"
    assert "mlx5_0" in result.findings[0].message
    unlimited = replace(container, rdma_devices=["mlx5_0"], memlock_kib=-1)
    assert judge("HOST-009", unlimited).outcome == "pass"


@pytest.mark.parametrize(("files", "outcome"), [(256, "warn"), (1_024, "pass"), (-1, "pass")])
def test_open_files(files: int, outcome: str) -> None:
    assert judge("HOST-009", replace(DEBIAN, open_files=files)).outcome == outcome


def node(path: str, mode: str, usable: bool) -> DeviceNode:
    return DeviceNode(path=path, mode=mode, owner="root", group="root", usable=usable)


@pytest.mark.parametrize(
    ("mode", "usable", "outcome"),
    [
        ("0666", False, "warn"),
        ("0666", True, "pass"),
        ("0660", False, "pass"),
        ("?", False, "pass"),
    ],
)
def test_selinux_in_a_container(mode: str, usable: bool, outcome: str) -> None:
    host = replace(DEBIAN, container="podman", selinux_label="system_u:system_r:container_t:s0")
    kernel = Kernel(
        device_nodes=[node("/dev/nvidia0", mode, usable), node("/dev/null", "0666", False)]
    )
    assert judge("HOST-010", host, kernel=kernel).outcome == outcome


def test_selinux_that_does_not_confine() -> None:
    host = replace(DEBIAN, container="docker", selinux="permissive")
    kernel = Kernel(device_nodes=[node("/dev/nvidia0", "0666", False)])
    assert judge("HOST-010", host, kernel=kernel).outcome == "skipped"
    assert judge("HOST-010", replace(host, selinux="enforcing"), kernel=kernel).outcome == "warn"


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"hypervisor": ABSENT}, ["bare metal"]),
        ({"hypervisor": "unknown"}, ["virtual machine of an unknown kind"]),
        ({"wsl": True, "hypervisor": "microsoft"}, ["WSL2", "/dev/dxg"]),
        ({"container": "docker"}, ["virtual machine (kvm)", "in a container (docker)"]),
        ({"container": "docker", "hypervisor": ABSENT}, ["container (docker)"]),
        ({"secure_boot": True, "lockdown": "integrity"}, ["must be signed", "lockdown integrity"]),
    ],
)
def test_place(facts: dict[str, Any], words: list[str]) -> None:
    result = judge("HOST-011", replace(DEBIAN, **facts))
    assert result.outcome == "pass"
    assert all(word in result.detail for word in words)
    assert result.detail.count("container (") <= 1


def test_findings_have_evidence_and_a_remedy() -> None:
    hosts = [
        replace(DEBIAN, architecture="i686", libc="musl", memory_total_mib=100, open_files=10),
        replace(DEBIAN, disks=[replace(d, free_mib=0, free_inodes=0, noexec=True) for d in DISKS]),
        with_disk("cache", filesystem="9p", read_only=True),
        replace(with_disk("cache", mount_point="/mnt/c", filesystem="9p"), wsl=True),
    ]
    pci = Pci(devices=[PciDevice(address="0000:01:00.0", kind="gpu", device_id="10de:2330")])
    found = [f for host in hosts for r in results(host, pci=pci).values() for f in r.findings]
    assert len(found) > 8
    for finding in found:
        assert finding.evidence
        assert all(evidence.source == "test" for evidence in finding.evidence)
        assert finding.remedy is not None
        assert finding.message.endswith(".")
