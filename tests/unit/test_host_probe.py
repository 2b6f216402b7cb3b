"""The host probe against fake trees, and its parsers against anything."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envcheck.collector.facts import Facts, dumps, from_error
from envcheck.collector.linux import disk as host_disk
from envcheck.collector.linux import limits as host_limits
from envcheck.collector.linux import mounts
from envcheck.collector.linux import security as host_security
from envcheck.collector.linux import virtualization as host_virtual
from envcheck.collector.probes import host
from envcheck.collector.runtime.context import Context
from envcheck.collector.worker import forked
from envcheck.facts.host import Host

ANYTHING = settings(max_examples=30, deadline=None)

MOUNTINFO = (
    "21 27 0:20 / /proc rw,relatime - proc proc rw\n"
    "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n"
    "30 27 0:27 / /home rw,nosuid,noexec,relatime shared:3 master:2 - nfs4 nas:/home rw,vers=4.2\n"
    "31 27 0:28 / /with\\040space rw - xfs /dev/vdb rw,usrquota\n"
    "32 27 0:29 / /home ro - ext4 /dev/vdc ro\n"
)


class Tree:
    """A fake machine below a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ: dict[str, str] = {"HOME": "/home/ada", "PATH": "/nowhere"}

    def write(self, path: str, content: str | bytes = "") -> Path:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def context(self, **params: Any) -> Context:
        return Context(self.environ, root=str(self.root), params=params)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def inline(functions: Any, deadline: float) -> list[tuple[str, Any]]:
    """forked.call_all without a process; a function that raises TimeoutError has hung."""
    results: list[tuple[str, Any]] = []
    for function in functions:
        try:
            results.append(("ok", function()))
        except TimeoutError:
            results.append(("timeout", None))
        except Exception as error:
            results.append(("error", from_error(error)))
    return results


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "call_all", inline)


def put(function: Any, tree: Tree, *arguments: Any) -> Facts:
    facts = Facts("test")
    function(facts, tree.context(), *arguments)
    return facts


def decoded(facts: Facts) -> Host:
    return msgspec.json.decode(dumps(facts.values).encode(), type=Host)


def test_a_whole_machine(tree: Tree) -> None:
    tree.write("/etc/os-release", 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12"\n')
    tree.write("/etc/passwd", f"ada:x:{os.geteuid()}:100:Ada,,,:/home/ada:/bin/sh\n")
    tree.write("/proc/sys/kernel/osrelease", "6.1.0-30-amd64\n")
    tree.write("/proc/sys/kernel/hostname", "vulcan\n")
    tree.write("/proc/self/mountinfo", MOUNTINFO)
    tree.write("/proc/self/cgroup", "0::/user.slice\n")
    tree.write("/proc/meminfo", "MemTotal:       16384000 kB\nMemAvailable:    8192000 kB\n")
    tree.write(
        "/proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu avx avx2 xyz\n\n"
    )
    (tree.root / "home/ada").mkdir(parents=True)
    facts = host.collect(tree.context(paths=["/opt/env"]))
    seen = decoded(facts)
    assert (seen.os_id, seen.os_version, seen.os_name) == ("debian", "12", "Debian GNU/Linux 12")
    assert (seen.user, seen.hostname, seen.kernel) == ("ada", "vulcan", "6.1.0-30-amd64")
    assert (seen.memory_total_mib, seen.memory_available_mib) == (16000, 8000)
    assert (seen.cpu_model, seen.cpu_flags) == ("A CPU", ["avx", "avx2"])
    assert seen.container.unavailable == "absent"  # type: ignore[union-attr]
    assert {role for disk in seen.disks for role in disk.roles} == {
        "home",
        "cache",
        "environments",
        "temporary",
        "target",
    }
    assert facts.sources["cpu_flags"] == "/proc/cpuinfo"


def test_an_empty_machine_gives_reasons_and_no_crash(tree: Tree) -> None:
    seen = decoded(host.collect(tree.context()))
    for name in (
        "os_id",
        "kernel",
        "cpu_flags",
        "memory_total_mib",
        "cgroup_version",
        "numa_nodes",
    ):
        assert getattr(seen, name).unavailable == "absent", name
    assert seen.architecture == os.uname().machine


# mounts


def test_mounts_longest_prefix_last_wins_and_octal_escapes() -> None:
    table = mounts.parse(MOUNTINFO)
    assert [mount.filesystem for mount in table] == ["proc", "ext4", "nfs4", "xfs", "ext4"]
    assert mounts.of(table, "/with space/x").filesystem == "xfs"
    assert mounts.of(table, "/with spaceX").point == "/"
    home = mounts.of(table, "/home/ada")
    assert (home.source, home.network) == ("/dev/vdc", False)  # mounted over the NFS one
    assert mounts.of(table, "/homer").point == "/"
    assert mounts.of([], "/") is None


@ANYTHING
@given(st.text(alphabet=st.sampled_from("0127 \\-/ab\n:"), max_size=300))
@example("1 0 0:1 / / rw -")
@example("1 0 0:1 / / rw - ext4")
def test_mountinfo_of_anything(text: str) -> None:
    for mount in mounts.parse(text):
        assert isinstance(mount.point, str)
    mounts.of(mounts.parse(text), "/a/b")


# disks


def disk_of(disks: list[dict[str, Any]], role: str) -> dict[str, Any]:
    return next(disk for disk in disks if role in disk["roles"])


def test_a_hung_mount_keeps_what_the_table_knows(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write("/proc/self/mountinfo", MOUNTINFO.replace("32 27", "").replace("0:29", ""))

    def hangs(path: str) -> Any:
        raise TimeoutError

    monkeypatch.setattr(host_disk, "look", hangs)
    disks = host_disk.disks(tree.context(), "/home/ada")
    home, temporary = disk_of(disks, "home"), disk_of(disks, "temporary")
    assert (home["filesystem"], home["network"], home["noexec"]) == ("nfs4", True, True)
    assert home["free_mib"]["unavailable"] == "timeout"
    # ext4 does not hang: /tmp must lead elsewhere, and where to is not known
    assert temporary["mount_point"]["unavailable"] == "timeout"
    assert temporary["noexec"]["unavailable"] == "timeout"


# cgroups and limits


def cgroup(tree: Tree, mountinfo: str, own: str, files: dict[str, str]) -> Facts:
    tree.write("/proc/self/mountinfo", mountinfo)
    tree.write("/proc/self/cgroup", own)
    for path, text in files.items():
        tree.write(path, text)
    return put(host_limits.put_cgroup, tree)


V2 = "41 31 0:38 {root} /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def test_cgroup_2_takes_the_lowest_limit_on_the_way_up(tree: Tree) -> None:
    facts = cgroup(
        tree,
        V2.format(root="/"),
        "0::/job.slice/step.scope\n",
        {
            "/sys/fs/cgroup/job.slice/memory.max": f"{2048 << 20}\n",
            "/sys/fs/cgroup/job.slice/cpu.max": "max 100000\n",
            "/sys/fs/cgroup/job.slice/step.scope/memory.max": "max\n",
            "/sys/fs/cgroup/memory.max": f"{4096 << 20}\n",
            "/sys/fs/cgroup/job.slice/step.scope/cpu.max": "150000 100000\n",
        },
    )
    assert facts.get("cgroup_version") == 2
    assert facts.get("cgroup_memory_limit_mib") == 2048
    assert facts.sources["cgroup_memory_limit_mib"] == "/sys/fs/cgroup/job.slice/memory.max"
    assert facts.get("cgroup_cpu_limit") == 1.5


# containers, hypervisors, WSL


def container(tree: Tree) -> Any:
    return put(host_virtual.put_container, tree).values["container"]


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("/run/.containerenv", 'engine="podman-4.3.1"', "podman"),
        ("/run/systemd/container", "lxc\n", "lxc"),
        ("/proc/1/environ", "PATH=/bin\0container=systemd-nspawn\0", "systemd-nspawn"),
        ("/proc/1/cgroup", "11:memory:/kubepods/besteffort/pod1/abc\n", "kubernetes"),
        ("/proc/1/cgroup", "0::/docker/0123456789abcdef\n", "docker"),
        (
            "/proc/self/mountinfo",
            "1 0 0:5 / / rw - overlay overlay rw,upperdir=/var/lib/docker/overlay2/x/diff\n",
            "docker",
        ),
        ("/proc/self/mountinfo", "1 0 0:5 / /proc/meminfo rw - fuse.lxcfs lxcfs rw\n", "lxc"),
    ],
)
def test_signs_of_containers(tree: Tree, path: str, text: str, name: str) -> None:
    tree.write(path, text)
    assert container(tree) == name


@pytest.mark.parametrize(
    ("release", "device", "wsl"),
    [
        ("5.15.153.1-microsoft-standard-WSL2", False, True),
        ("6.1.0-30-amd64", True, True),
        ("4.4.0-19041-Microsoft", False, True),
        ("6.1.0-30-amd64", False, False),
    ],
)
def test_wsl(tree: Tree, release: str, device: bool, wsl: bool) -> None:
    tree.write("/proc/sys/kernel/osrelease", release)
    if device:
        tree.write("/dev/dxg")
    assert put(host_virtual.put_wsl, tree).get("wsl") is wsl


X86_VM = {"fpu", "hypervisor"}


@pytest.mark.parametrize(
    ("vendor", "product", "name"),
    [
        ("QEMU", "Standard PC (Q35 + ICH9, 2009)", "kvm"),
        ("Amazon EC2", "p4d.24xlarge", "kvm"),
        ("VMware, Inc.", "VMware7,1", "vmware"),
        ("Microsoft Corporation", "Virtual Machine", "microsoft"),
        ("innotek GmbH", "VirtualBox", "oracle"),
        ("Nobody", "Knows", "unknown"),
    ],
)
def test_hypervisors_by_dmi(tree: Tree, vendor: str, product: str, name: str) -> None:
    tree.write("/sys/class/dmi/id/sys_vendor", vendor + "\n")
    tree.write("/sys/class/dmi/id/product_name", product + "\n")
    assert put(host_virtual.put_hypervisor, tree, X86_VM).values["hypervisor"] == name


# security


@pytest.mark.parametrize(
    ("variable", "expected"),
    [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (b"\x06\0", "error"), (None, "absent")],
)
def test_secure_boot(tree: Tree, variable: bytes | None, expected: bool | str) -> None:
    (tree.root / "sys/firmware/efi").mkdir(parents=True)
    if variable is not None:
        tree.write(host_security.SECURE_BOOT, variable)
    value = put(host_security.put_security, tree).values["secure_boot"]
    assert (value if isinstance(value, bool) else value["unavailable"]) == expected


@ANYTHING
@given(st.text(max_size=200))
def test_parsers_of_anything(text: str) -> None:
    json.dumps(host.parse_os_release(text))
    json.dumps(host.parse_cpuinfo(text))
    json.dumps(host_limits.parse_groups(text))
