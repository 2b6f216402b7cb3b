"""The kernel probe against fake trees."""

from __future__ import annotations

import gzip
import lzma
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world.elf import kernel_module, modinfo
from world.kernel_tree import RELEASE, Tree, decode, reason

from envcheck.collector.facts import is_unavailable
from envcheck.collector.linux import driver_packages as kernel_packages
from envcheck.collector.linux import driver_version as kernel_version
from envcheck.collector.linux import kernel_log
from envcheck.collector.linux import modinfo as kernel_modinfo
from envcheck.collector.linux import modules as kernel_modules
from envcheck.collector.probes import kernel
from envcheck.facts.base import Unavailable, known
from envcheck.facts.kernel import DkmsState, DriverPackage, Kernel, ModuleFile

ANYTHING = settings(max_examples=30, deadline=None)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def probe(tree: Tree) -> Kernel:
    facts: Kernel = decode(kernel.collect(tree.context()), Kernel)
    return facts


def test_an_empty_machine(tree: Tree) -> None:
    facts = probe(tree)
    for name in ("release", "modules", "driver_version", "module_files", "dkms", "device_nodes"):
        assert reason(getattr(facts, name)) == "absent", name
    assert facts.driver_files == []
    assert reason(facts.driver_packages) == "absent"
    assert reason(facts.reboot_required) == "not-supported"
    assert reason(facts.log) == "absent"
    assert [service.name for service in facts.services] == [
        "nvidia-fabricmanager", "nvidia-persistenced", "nvidia-dcgm", "nvidia-cuda-mps-control",
        "nvidia-powerd", "nvidia-gridd",
    ]  # fmt: skip


def test_module_files_where_installers_put_them(tree: Tree) -> None:
    top = "/lib/modules"
    tree.write("/proc/sys/kernel/osrelease", RELEASE + "\n")
    tree.write(f"{top}/5.15.0-1-generic/updates/dkms/nvidia.ko", kernel_module(modinfo("535.1.2")))
    tree.write(
        f"{top}/{RELEASE}/kernel/nvidia-550srv-open/nvidia.ko",
        kernel_module(modinfo("550.54.15", "Dual MIT/GPL")),
    )
    tree.write(
        f"{top}/{RELEASE}/extra/nvidia/nvidia.ko.xz",
        lzma.compress(bytes(5000) + b"\0" + modinfo("550.54.15")),
    )
    tree.write(
        f"{top}/6.1.0-9-amd64/updates/dkms/nvidia-current.ko.gz",
        gzip.compress(b"\0" + modinfo("470.256.02"), mtime=0),
    )
    tree.write(f"{top}/{RELEASE}/updates/dkms/nvidia.ko.zst", b"\x28\xb5\x2f\xfd")
    for other in ("nvidia-uvm.ko", "nvidia-drm.ko.xz", "nvidia-fs.ko", "nvidiafb.ko"):
        tree.write(f"{top}/{RELEASE}/updates/dkms/{other}", "x")
    files = probe(tree).module_files
    assert isinstance(files, list)
    zst = next(file for file in files if file.path.endswith(".zst"))
    assert reason(zst.version) in (
        "not-supported",
        "error",
    )  # Python 3.14 tries, and finds no module
    assert [file for file in files if file is not zst] == [
        ModuleFile(
            kernel=RELEASE,
            path=f"{top}/{RELEASE}/extra/nvidia/nvidia.ko.xz",
            version="550.54.15",
            flavour="proprietary",
            uvm=True,
        ),
        ModuleFile(
            kernel=RELEASE,
            path=f"{top}/{RELEASE}/kernel/nvidia-550srv-open/nvidia.ko",
            version="550.54.15",
            flavour="open",
            uvm=True,
        ),
        ModuleFile(
            kernel="5.15.0-1-generic",
            path=f"{top}/5.15.0-1-generic/updates/dkms/nvidia.ko",
            version="535.1.2",
            flavour="proprietary",
            uvm=False,
        ),
        ModuleFile(
            kernel="6.1.0-9-amd64",
            path=f"{top}/6.1.0-9-amd64/updates/dkms/nvidia-current.ko.gz",
            version="470.256.02",
            flavour="proprietary",
            uvm=False,
        ),
    ]


@ANYTHING
@given(st.binary(max_size=300), st.sampled_from([".ko", ".ko.gz", ".ko.xz", ".ko.zst"]))
def test_modinfo_takes_any_bytes(tmp_path_factory: Any, content: bytes, suffix: str) -> None:
    file = tmp_path_factory.mktemp("ko") / f"nvidia{suffix}"
    for body in (content, b"\x7fELF\x02\x01" + content):
        file.write_bytes(body)
        found = kernel_modinfo.read_modinfo(str(file), time.monotonic() + 5)
        assert set(found) == {"version", "flavour"}
        assert all(is_unavailable(value) or isinstance(value, str) for value in found.values())


def test_dkms_states(tree: Tree) -> None:
    top = "/var/lib/dkms"
    built = f"{top}/nvidia/535.1/{RELEASE}/x86_64"
    tree.write(f"{built}/module/nvidia.ko", "x")
    tree.link(f"{top}/nvidia/kernel-{RELEASE}-x86_64", f"535.1/{RELEASE}/x86_64")
    tree.write(f"{top}/nvidia/535.1/6.8.0-50-generic/x86_64/module/nvidia.ko", "x")
    tree.write(f"{top}/nvidia/535.1/6.8.0-60-generic/x86_64/log/make.log", "failed")
    tree.write(f"{top}/nvidia/550.2/build/x", "x")
    tree.link(f"{top}/nvidia/550.2/source", "/usr/src/nvidia-550.2")
    tree.write(f"{top}/zfs/2.2/{RELEASE}/x86_64/module/zfs.ko", "x")
    assert probe(tree).dkms == [
        DkmsState(module="nvidia", version="535.1", kernel=RELEASE, state="installed"),
        DkmsState(module="nvidia", version="535.1", kernel="6.8.0-50-generic", state="built"),
        DkmsState(
            module="nvidia",
            version="550.2",
            state="added",
            kernel=Unavailable(unavailable="absent", detail="never built"),
        ),
    ]


MAKE_LOG = """\
DKMS make.log for nvidia-440.64 for kernel 5.5.9-918.native (x86_64)
make[1]: Entering directory '/usr/lib/modules/5.5.9-918.native/build'
  SYMLINK /var/lib/dkms/nvidia/440.64/build/nvidia/nv-kernel.o
Compiler version check failed:
compile the kernel:
gcc version 9.2.1 20200130 (Clear Linux OS for Intel Architecture)
*** Failed CC version check. Bailing out! ***
"""


def test_logs_of_builds_that_failed(tree: Tree) -> None:
    tree.write("/var/lib/dkms/nvidia/440.64/build/make.log", MAKE_LOG)
    done = "/var/lib/dkms/nvidia/450.80/5.5.9/x86_64"
    tree.write(f"{done}/module/nvidia.ko", "x")
    tree.write(f"{done}/log/make.log", MAKE_LOG)
    name = "570.144-1-for-6.14.5-300.fc42.x86_64.failed.log"
    tree.write(f"/var/cache/akmods/nvidia/{name}", "a.c:1: error: too few arguments\n" * 99)
    tree.write("/var/log/nvidia-installer.log", "all is well\n")
    found = known(probe(tree).build_logs) or []
    logs = {log.path.rpartition("/")[2]: log for log in found}
    assert len(found) == 2 and set(logs) == {"make.log", name}
    assert logs["make.log"].kernel == "5.5.9-918.native"
    assert [line[:24] for line in logs["make.log"].lines] == [
        "Compiler version check f",
        "gcc version 9.2.1 202001",
        "*** Failed CC version ch",
    ]
    assert logs[name].kernel == "6.14.5-300.fc42.x86_64"
    assert logs[name].lines == ["a.c:1: error: too few arguments"]


def test_what_modprobe_and_the_kernel_say_of_modules(tree: Tree) -> None:
    tree.write(
        "/proc/cmdline",
        "quiet modprobe.blacklist=nova-core,pcspkr rd.driver.blacklist=nvidia_uvm secret=1"
        " nouveau.modeset=0\n",
    )
    tree.write("/etc/modprobe.d/a.conf", "# blacklist nvidia_modeset\nblacklist nvidia-drm # why\n")
    tree.write("/lib/modprobe.d/a.conf", "blacklist nvidia\n")  # hidden by the one in /etc
    tree.write(
        "/lib/modprobe.d/b.conf",
        "alias nvidia-peermem off\ninstall nvidia_uvm \\\n /bin/false\ninstall nvidia x\nalias\n",
    )
    tree.write("/lib/modprobe.d/c.txt", "blacklist nvidia\n")
    tree.write("/etc/modprobe.d/v.conf", "options vfio-pci ids=10de:1b81,10de:10f0 disable_vga=1\n")
    tree.write(
        "/etc/modprobe.d/w.conf", 'options nvidia NVreg_ExcludedGpus="GPU-1"\noptions snd x=1\n'
    )
    information = "/proc/driver/nvidia/gpus/%s/information"
    tree.write(information % "0000:2A:00.0", "Model: \t x\nGPU Excluded:\t Yes\n")
    tree.write(information % "0000:3a:00.0", "Model: \t x\nGPU Excluded:\t No\n")
    tree.write(
        "/proc/modules", "nvidia 97914880 -1 - Unloading 0x0 (OE)\nnvidia_uvm 1 0 - Live 0x0\n"
    )
    modules, options = probe(tree).modules, probe(tree).module_options
    assert isinstance(modules, list) and isinstance(options, list)
    assert [module.state for module in modules] == ["Unloading", "Live"]
    assert [(one.module, one.name, one.value) for one in options] == [
        ("vfio_pci", "ids", "10de:1b81,10de:10f0"),
        ("vfio_pci", "disable_vga", "1"),
        ("nvidia", "NVreg_ExcludedGpus", "GPU-1"),
        ("nouveau", "modeset", "0"),
    ]
    assert probe(tree).excluded_gpus == ["0000:2a:00.0"]
    out = probe(tree).kept_out
    assert isinstance(out, list)
    assert [(one.module, one.path, one.line) for one in out] == [
        ("nova_core", "/proc/cmdline", "modprobe.blacklist=nova-core,pcspkr"),
        ("nouveau", "/proc/cmdline", "nouveau.modeset=0"),
        ("nvidia_drm", "/etc/modprobe.d/a.conf", "blacklist nvidia_drm"),
        ("nvidia_peermem", "/lib/modprobe.d/b.conf", "alias nvidia_peermem off"),
        ("nvidia_uvm", "/lib/modprobe.d/b.conf", "install nvidia_uvm /bin/false"),
    ]


def test_udev_rules_and_masked_services(tree: Tree) -> None:
    remove = 'ATTR{vendor}=="0x10de", ATTR{class}=="0x03[0-9]*", ATTR{remove}="1"'
    tree.write(
        "/etc/udev/rules.d/50-x.rules", f'# nvidia MODE=1\n{remove}\nKERNEL=="sda", MODE="0"\n'
    )
    tree.write("/lib/udev/rules.d/50-x.rules", 'KERNEL=="nvidia0", MODE="0600"\n')  # hidden
    tree.link("/etc/systemd/system/nvidia-powerd.service", "/dev/null")
    found = probe(tree)
    assert [(rule.path, rule.line) for rule in found.udev_rules] == [
        ("/etc/udev/rules.d/50-x.rules", remove)
    ]
    assert [one.name for one in found.services if one.masked] == ["nvidia-powerd"]


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/var/lib/pacman/local/nvidia-open-570.1-2", "nvidia-open"),
        ("/var/db/pkg/x11-drivers/nvidia-drivers-570.1", "nvidia-drivers"),
    ],
)
def test_packages_by_their_directories(tree: Tree, folder: str, name: str) -> None:
    tree.write(f"{folder}/desc", "x")
    tree.write(f"{folder.rpartition('/')[0]}/mesa-25.1-1/desc", "x")
    packages = probe(tree).driver_packages
    assert isinstance(packages, list)
    assert [(one.name, one.version.partition("-")[0]) for one in packages] == [(name, "570.1")]


def stanza(name: str, version: str, status: str = "install ok installed") -> str:
    return f"Package: {name}\nStatus: {status}\nArchitecture: amd64\nVersion: {version}\nX: y\n\n"


def dpkg(name: str, version: str, state: str = "installed", held: bool = False) -> DriverPackage:
    return DriverPackage(manager="dpkg", name=name, version=version, state=state, held=held)


def test_packages_from_dpkgs_own_file(tree: Tree) -> None:
    tree.write(
        kernel_packages.DPKG,
        stanza("nvidia-driver-535", "535.183.01-0ubuntu1")
        + stanza("libnvidia-compute-550", "550.1-1", "deinstall ok config-files")
        + stanza("libcuda1", "535.183.01-1~deb12u1", "hold ok installed")
        + stanza("nvidia-dkms-535", "535.183.01-0ubuntu1", "install ok half-configured")
        + stanza("libcuda1", "535.183.01-1~deb12u1")  # of another architecture
        + stanza("nvidia-driver-local-repo-ubuntu2204-535", "1.0-1")
        + stanza("nvidia-settings", "1")
        + stanza("bash", "5")
        + "Package: cuda-drivers\nStatus: install ok installed\nVersion: 560.1-1",
    )
    assert probe(tree).driver_packages == [
        dpkg("cuda-drivers", "560.1-1"),
        dpkg("libcuda1", "535.183.01-1~deb12u1", held=True),
        dpkg("nvidia-dkms-535", "535.183.01-0ubuntu1", state="half-configured"),
        dpkg("nvidia-driver-535", "535.183.01-0ubuntu1"),
    ]
    assert probe(tree).reboot_required is False


KMSG = (
    "6,1,100,-;Linux version 6.8.0\n SUBSYSTEM=acpi\n"
    "4,900,12345678,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python3\n"
)


def test_the_kernels_ring_buffer(tree: Tree) -> None:
    tree.write("/dev/kmsg", KMSG)
    facts = kernel.collect(tree.context())
    assert facts.sources["log"] == "/dev/kmsg, from 0.0 s after boot"
    log = decode(facts, Kernel).log
    assert [(event.xid, event.pci_address, event.seconds) for event in log] == [
        (31, "0000:3b:00.0", 12.345678)
    ]


def refuse(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the opening of one file fail for want of permission, whoever runs this test."""
    real = kernel_log.os.open

    def refusing(name: str, *flags: Any) -> int:
        if name.endswith(path):
            raise PermissionError(1, "Operation not permitted")
        return real(name, *flags)

    monkeypatch.setattr(kernel_log.os, "open", refusing)


def test_a_log_file_where_the_ring_buffer_is_closed(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse("/dev/kmsg", monkeypatch)
    tree.write("/proc/stat", "cpu 1\nbtime 1000\n")
    tree.write(
        "/var/log/kern.log",
        "Nov 20 host kernel: [    0.000000] Linux version 6.8\n"
        "Nov 20 host kernel: [   12.3] NVRM: Xid (PCI:0000:3b:00): 48, pid=7\n",
    )
    facts = kernel.collect(tree.context())
    assert facts.sources["log"] == "/var/log/kern.log"
    assert [event["xid"] for event in facts.values["log"]] == [48]


@ANYTHING
@given(st.text())
def test_small_parsers_take_any_text(text: str) -> None:
    version, flavour = kernel_version.parse_version(text)
    assert is_unavailable(version) == is_unavailable(flavour)
    for names in (kernel_modules.parse_cmdline(text),):
        assert all(isinstance(name, str) and name for name in names)
    assert isinstance(kernel_packages.parse_dpkg(text), list)
    assert isinstance(kernel_packages.parse_rpm(text), list)
