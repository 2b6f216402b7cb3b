"""Remedies' commands work on the machine that they are printed for: its package manager, its user."""

from __future__ import annotations

import functools
import re
import shlex
from typing import Any

import corpus
import pytest
from build import snapshot
from targets import replace as with_probes
from test_failure_modes import OTHERS, ROWS

from envcheck.checks.engine import diagnose
from envcheck.checks.system_commands import (
    ShellText,
    adapted,
    in_engine,
    in_image,
    on_system,
    systemctl,
)
from envcheck.facts.base import Unavailable
from envcheck.facts.host import Host
from envcheck.facts.pci import Pci, PciDevice
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.view import SnapshotView
from envcheck.findings.model import Remedy

ABSENT = Unavailable(unavailable="absent")

DEBIAN = {"apt", "apt-cache", "apt-mark", "dpkg", "update-initramfs", "update-grub"}
RED_HAT = {"dnf", "rpm", "dracut", "grubby"}
SUSE = {"zypper", "rpm", "dracut"}
ARCH = {"pacman", "mkinitcpio"}

# (ID, ID_LIKE) of os-release, and the package managers that may be named there.
SYSTEMS = {
    "ubuntu": (["debian"], DEBIAN | {"ubuntu-drivers"}),
    "debian": ([], DEBIAN),
    "fedora": ([], RED_HAT),
    "rocky": (["rhel", "centos", "fedora"], RED_HAT),
    "opensuse-tumbleweed": (["opensuse", "suse"], SUSE),
    "arch": ([], ARCH),
    "manjaro": (["arch"], ARCH),
    "cachyos": (["arch"], ARCH),
    "amzn": (["fedora"], RED_HAT),
    "azurelinux": ([], RED_HAT),
    "sles": (["suse"], SUSE),
    "clear-linux-os": ([], {"swupd"}),
    "nixos": ([], {"nixos-rebuild"}),
}
MANAGERS = {
    "apt", "apt-get", "apt-cache", "apt-mark", "dpkg", "ubuntu-drivers", "dnf", "yum", "rpm",
}  # fmt: skip
MANAGERS |= {"zypper", "pacman", "apk", "emerge", "swupd", "nixos-rebuild", "update-initramfs"}
MANAGERS |= {"update-grub", "mkinitcpio", "dracut", "grubby"}


def view(**host: Any) -> SnapshotView:
    return SnapshotView(snapshot(host=Host(**host)))


@functools.cache
def machines() -> list[Snapshot]:
    below = ("KRN", "DRV", "HOST", "CTR")
    reports = [one for one in corpus.reports().values() if one.code.startswith(below)]
    return [*map(corpus.snapshot, reports)] + [
        make() for make, _told in (*ROWS.values(), *OTHERS.values())
    ]


def on(snap: Snapshot, **changes: Any) -> Snapshot:
    probe = snap.machine.host
    facts = Host() if probe is None or probe.facts is None else probe.facts
    given = {name: getattr(facts, name) for name in Host.__struct_fields__}
    return with_probes(snap, "machine", host=Host(**(given | changes)))


def commands(snap: Snapshot) -> list[str]:
    return [
        command
        for result in diagnose(snap).results
        for finding in result.findings
        if finding.remedy is not None
        for command in finding.remedy.commands
    ]


@pytest.mark.parametrize("name", SYSTEMS)
def test_no_remedy_names_another_systems_package_manager(name: str) -> None:
    like, own = SYSTEMS[name]
    for snap in machines():
        for command in commands(on(snap, os_id=name, os_like=like)):
            named = set(re.findall(r"(?:^|[|;&]\s*|sudo |xargs )([a-z-]+)", command))
            assert named & MANAGERS <= own, command


@pytest.mark.parametrize(
    ("like", "name"), [(["debian"], "linux-of-mine"), (["rhel", "fedora"], "rhel-of-mine")]
)
def test_a_relative_is_known_by_what_it_is_like(like: list[str], name: str) -> None:
    assert on_system(view(os_id=name, os_like=like), "podman")
    assert on_system(view(os_id=name), "podman") == []
    assert on_system(SnapshotView(snapshot()), "podman") == []


def test_what_a_snapshot_says_is_quoted_and_our_own_code_is_not() -> None:
    debian = view(os_id="debian")
    (own,) = on_system(debian, "kernel-headers", release=ShellText("$(uname -r)"))
    assert own == "sudo apt install linux-headers-$(uname -r)"
    (foreign,) = on_system(debian, "kernel-headers", release="$(evil) x")
    assert shlex.split(foreign)[3] == "linux-headers-$(evil) x"
    (several,) = on_system(debian, "owner", names=["/a b", "-c"])
    assert shlex.split(several) == ["dpkg", "-S", "/a b", "./-c"]


COMMANDS = [
    "sudo modprobe nvidia",
    "printf 'x' | sudo tee /etc/modprobe.d/x.conf",
    "sudo dmesg | grep -i nvrm",
    "dpkg -l | xargs sudo apt-mark hold",
    "sudoedit /etc/default/grub",
    "sudo apt remove 'libcudnn*' && sudo ldconfig",
    "echo sudo su",
]


def test_root_needs_no_sudo_which_may_not_be_there() -> None:
    result = adapted(view(is_root=True, container=ABSENT), Remedy("Do.", COMMANDS))
    assert result == Remedy(
        "Do.",
        [
            "modprobe nvidia",
            "printf 'x' | tee /etc/modprobe.d/x.conf",
            "dmesg | grep -i nvrm",
            "dpkg -l | xargs apt-mark hold",
            '"${EDITOR:-vi}" /etc/default/grub',
            "apt remove 'libcudnn*' && ldconfig",
            "echo sudo su",
        ],
    )
    assert (
        adapted(view(is_root=False, container=ABSENT), Remedy("Do.", COMMANDS)).commands == COMMANDS
    )
    assert adapted(SnapshotView(snapshot()), Remedy("Do.", COMMANDS)).commands == COMMANDS


def test_in_a_container_what_only_its_host_can_do_is_a_comment() -> None:
    inside = view(is_root=True, container="docker")
    result = adapted(inside, Remedy("Reload, or reboot.", ["sudo modprobe nvidia", "sudo reboot"]))
    assert result.text == "Outside of this container, on its host: Reload, or reboot."
    assert result.commands == ["# on the host: sudo modprobe nvidia", "# on the host: sudo reboot"]
    mixed = adapted(inside, Remedy("Do.", ["sudo apt install x", "sudo reboot"]))
    assert mixed == Remedy("Do.", ["apt install x", "# on the host: sudo reboot"])


def test_in_a_container_nothing_reboots_or_loads_a_module() -> None:
    for snap in machines():
        for command in commands(on(snap, container="docker", is_root=True)):
            assert command.startswith("# on the host: ") or not re.search(
                r"\b(reboot|poweroff|modprobe|systemctl|sudo|dkms)\b", command
            ), command


ENGINES = {"docker": "docker", "podman": "podman", "lxc": "lxc", "kubernetes": "kubectl"}
ENGINES |= {"apptainer": "apptainer", "a-new-engine": "docker"}


@pytest.mark.parametrize("kind", ENGINES)
def test_a_container_is_started_again_in_its_own_engines_words(kind: str) -> None:
    named: set[str] = set()
    for snap in machines():
        for command in commands(on(snap, container=kind)):
            named |= set(re.findall(r"\b(docker|podman|lxc|kubectl|apptainer) \w", command))
    assert ENGINES[kind] in named
    for code in ("gpus", "capabilities", "memory", "files", "limits"):
        (first, *_) = in_engine(view(container=kind), code)
        assert first.split()[0] in (ENGINES[kind], "docker")


@pytest.mark.parametrize(
    ("system", "restart", "enable"),
    [
        ("debian", "sudo systemctl restart x", "sudo systemctl enable --now x"),
        ("gentoo", "sudo rc-service x restart", "sudo rc-update add x && sudo rc-service x start"),
        ("void", "sudo sv restart x", "sudo ln -s /etc/sv/x /var/service/"),
    ],
)  # fmt: skip
def test_a_service_is_started_by_the_systems_own_init(
    system: str, restart: str, enable: str
) -> None:
    printed = [systemctl("restart", "x"), systemctl("enable --now", "x")]
    found = adapted(view(os_id=system, container=ABSENT), Remedy("Start it.", printed)).commands
    assert found == [restart, enable]


@pytest.mark.parametrize("system", ["debian", "rocky", "opensuse-tumbleweed"])
def test_an_image_gets_its_packages_by_its_own_manager(system: str) -> None:
    (line,) = in_image(view(os_id=system, os_like=SYSTEMS[system][0]), "rdma-libraries")
    words = line.removeprefix("# in its Dockerfile: RUN ").split()
    assert words[0] in SYSTEMS[system][1] and words[1:3] == ["install", "-y"]


@pytest.mark.parametrize(
    ("device", "command"),
    [("10de:1db6", "nvidia-driver:580-dkms"), ("10de:2330", "nvidia-open")],
)
def test_the_driver_that_is_installed_supports_the_gpu(device: str, command: str) -> None:
    gpu = PciDevice(address="0000:01:00.0", kind="gpu", device_id=device)
    seen = snapshot(host=Host(os_id="rocky"), pci=Pci(devices=[gpu]))
    assert command in "\n".join(on_system(SnapshotView(seen), "install-driver"))
