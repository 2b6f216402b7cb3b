"""What brings module and libraries together: by what is on disk, in whose words, and never in vain."""

from __future__ import annotations

from typing import Any

import h100
import pytest
from corpus_machines import container, mismatch
from msgspec.structs import replace
from targets import replace as with_probes
from whole import ABSENT, RELEASE, diagnosed, host, independent, whole
from whole import kernel as healthy_kernel

from envcheck.facts.kernel import BuildLog, DkmsState, DriverPackage, Kernel, ModuleFile
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import Remedy

OLD, NEW = "520.61.05", "525.60.13"
LATER = "5.15.0-119-generic"


def module(version: Any, kernel: str = RELEASE) -> ModuleFile:
    return ModuleFile(kernel=kernel, path=f"/lib/modules/{kernel}/x/nvidia.ko", version=version)


def package(name: str, version: str, state: str = "installed", held: bool = False) -> DriverPackage:
    return DriverPackage(manager="dpkg", name=name, version=f"{version}-1", state=state, held=held)


def upgraded(**changes: Any) -> Kernel:
    """OLD is loaded, NEW's libraries are on disk, and nothing more is known."""
    facts: dict[str, Any] = {
        "driver_version": OLD,
        "driver_files": [h100.file("libcuda", NEW), h100.file("libnvidia-ml", NEW)],
        "module_files": [],
        "dkms": ABSENT,
        "driver_packages": [],
    }
    return healthy_kernel(**(facts | changes))


def remedy_of(kernel: Kernel, **changes: Any) -> Remedy:
    snapshot = mismatch(whole(host=host(**changes)))
    result = diagnosed(with_probes(snapshot, "machine", kernel=kernel))["DRV-002"]
    (finding,) = result.findings
    assert finding.remedy is not None
    return finding.remedy


def words(remedy: Remedy) -> str:
    return "\n".join([remedy.text, *remedy.commands])


def test_the_new_module_is_on_disk_so_a_reload_is_enough() -> None:
    remedy = remedy_of(upgraded(module_files=[module(NEW)]))
    assert "sudo modprobe -r nvidia_uvm nvidia && sudo modprobe nvidia" in remedy.commands
    assert any("apt-mark hold" in command for command in remedy.commands)
    assert "dpkg" not in words(remedy)


def test_a_newer_kernel_has_the_new_module() -> None:
    remedy = remedy_of(upgraded(module_files=[module(OLD), module(NEW, LATER)]))
    assert LATER in remedy.text and remedy.commands[1] == "sudo reboot"
    assert "modprobe" not in words(remedy)


HALF = [package("libnvidia-compute-525", NEW), package("nvidia-dkms-525", NEW, "half-configured")]
OTHERS = [package("libnvidia-compute-525", NEW), package("nvidia-dkms-520", OLD)]


@pytest.mark.parametrize(
    ("packages", "commands"),
    [
        (HALF, ["sudo dpkg --configure -a", "sudo apt --fix-broken install", "dkms autoinstall"]),
        (OTHERS, ["sudo apt install nvidia-driver-525-open"]),
    ],
)
def test_an_upgrade_that_stopped_half_way_is_finished(
    packages: list[DriverPackage], commands: list[str]
) -> None:
    remedy = remedy_of(upgraded(module_files=[module(OLD)], driver_packages=packages))
    assert "changes nothing" in remedy.text and OLD in remedy.text and NEW in remedy.text
    for command in commands:
        assert any(command in line for line in remedy.commands), remedy.commands
    assert remedy.commands[-1] == "sudo reboot" and "modprobe" not in words(remedy)


def test_the_runfiles_module_under_the_packages_libraries() -> None:
    kernel = upgraded(
        module_files=[module(OLD)],
        driver_packages=[package("libnvidia-compute-525", NEW)],
        runfile_installer="/usr/bin/nvidia-uninstall",
    )
    remedy = remedy_of(kernel)
    assert "nvidia-uninstall\n" in words(remedy) and "sudo /usr/bin" not in words(remedy)
    snapshot = with_probes(mismatch(whole()), "machine", kernel=kernel)
    assert diagnosed(snapshot)["KRN-005"].consequence_of == "DRV-002"


def test_a_build_that_failed_is_why_the_upgrade_stopped() -> None:
    log = BuildLog(path="/x/make.log", kernel=RELEASE, lines=["a.c: error: too few arguments"])
    states = [DkmsState(module="nvidia", version=NEW, state="added")]
    remedy = remedy_of(upgraded(module_files=[module(OLD)], dkms=states, build_logs=[log]))
    assert "older than this kernel" in remedy.text and "ubuntu-drivers" in words(remedy)


def test_in_a_container_nothing_is_reloaded() -> None:
    snapshot = mismatch(container())
    (finding,) = diagnosed(snapshot)["DRV-002"].findings
    assert finding.remedy is not None and "start it again" in words(finding.remedy)
    assert "modprobe" not in words(finding.remedy) and "reboot" not in words(finding.remedy)


def working(kernel: Kernel) -> Snapshot:
    """A machine on which all works, with this kernel's side."""
    return with_probes(whole(), "machine", kernel=kernel)


def test_a_reboot_into_half_an_upgrade_is_warned_of() -> None:
    kernel = healthy_kernel(module_files=[module(NEW)], dkms=ABSENT)
    (finding,) = diagnosed(working(kernel))["KRN-012"].findings
    assert "after the next reboot no program finds a GPU" in finding.message
    assert finding.remedy is not None and "Finish the upgrade" in finding.remedy.text
    both = replace(kernel, driver_files=[h100.file("libcuda", NEW), h100.file("libnvidia-ml", NEW)])
    (finding,) = diagnosed(working(both))["KRN-012"].findings
    assert finding.remedy == Remedy(
        "Reboot when the machine is idle.", ["sudo fuser -v /dev/nvidia*", "sudo reboot"]
    )


def test_holds_and_logs_alone_are_no_finding() -> None:
    held = [package("nvidia-dkms-535", h100.DRIVER, held=True)]
    kernel = healthy_kernel(driver_packages=held, build_logs=[], headers=[RELEASE])
    assert independent(diagnosed(working(kernel))) == {}


def test_another_copy_of_the_libraries_is_loaded() -> None:
    files = [
        h100.file("libnvidia-ml", OLD),
        h100.file("libnvidia-ml", NEW, "/usr/local/nvidia/lib64"),
    ]
    remedy = remedy_of(upgraded(driver_files=files))
    assert "take those away" in remedy.text and "modprobe" not in words(remedy)
    assert any("/usr/local/nvidia/lib64" in command for command in remedy.commands)
