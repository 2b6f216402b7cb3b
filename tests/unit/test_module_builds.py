"""Why the driver's module is not on disk for a kernel, and what each reason asks for."""

from __future__ import annotations

from typing import Any

import pytest
from corpus_machines import no_uvm, unloaded
from whole import ABSENT, RELEASE, diagnosed, host, kernel, whole

from envcheck.data.build_errors import build_error
from envcheck.facts.kernel import BuildLog, DriverPackage, ModuleFile
from envcheck.findings.model import CheckResult

NOW = "6.8.0-45-generic"
PATH = "/var/lib/dkms/nvidia/535.104.05/build/make.log"

# words of a log → the reason
LOGS = {
    "Error! Your kernel headers for kernel 6.8.0 cannot be found at /lib/modules/6.8.0/build": "headers",
    "/usr/src/linux/include/linux/version.h: No such file or directory": "headers",
    "*** Failed CC version check. Bailing out! ***": "compiler-differs",
    "gcc-version-check failed:": "compiler-differs",
    "/usr/bin/ld: unrecognised emulation mode: llvm": "llvm",
    "cc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'": "compiler-old",
    "x.c:9: error: implicit declaration of function 'drm_x' [-Werror=implicit-function-declaration]": "api",
    "nv.c:9: Fehler: implizite Deklaration [-Werror=implicit-function-declaration]": "api",
    "error: 'struct vm_area_struct' has no member named 'vm_x'": "api",
    "nv.h:9:10: fatal error: stdarg.h: No such file or directory": "api",
    "FATAL: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol 'rcu_read_lock'": "api",
    "make: gcc: No such file or directory": "no-compiler",
    "/bin/sh: 1: gcc: not found": "no-compiler",
    "fatal error: error writing to /tmp/x.s: No space left on device": "space",
    "gcc: internal compiler error: Killed (program cc1)": "memory",
}


@pytest.mark.parametrize("line", LOGS)
def test_a_log_tells_the_reason(line: str) -> None:
    found = build_error(["make[1]: Entering directory", line, "make: *** [Makefile:80] Error 2"])
    assert found is not None and found[0].cause == LOGS[line] and found[1] == line


def judged(code: str = "KRN-003", **changes: Any) -> CheckResult:
    """A machine whose module is built for RELEASE only, under kernel NOW."""
    facts: dict[str, Any] = {
        "release": NOW,
        "kernels_installed": [RELEASE, NOW],
        "headers": [RELEASE, NOW],
    }
    machine = {key: changes.pop(key) for key in list(changes) if key.startswith("os_")}
    snapshot = unloaded(whole(kernel=kernel(**(facts | changes)), host=host(kernel=NOW, **machine)))
    return diagnosed(snapshot)[code]


def words(result: CheckResult) -> str:
    (finding,) = result.findings
    assert finding.remedy is not None
    return "\n".join([finding.message, finding.remedy.text, *finding.remedy.commands])


@pytest.mark.parametrize(
    ("line", "message", "command"),
    [
        ("Failed CC version check. Bailing out!", "another version", "env IGNORE_CC_MISMATCH=1"),
        ("error: too few arguments to function", "older than this kernel", "ubuntu-drivers"),
        ("unrecognized command-line option '-f'", "does not know its", "sudo env CC=gcc-13 dkms"),
        ("No space left on device", "no space left", "df -h"),
        ("kernel headers for kernel x cannot be found", "headers are missing", "dkms autoinstall"),
    ],
)
def test_each_reason_has_its_remedy(line: str, message: str, command: str) -> None:
    built_by = "The kernel was built by: x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0) 13.2.0"
    logs = [BuildLog(path=PATH, kernel=NOW, lines=[built_by, line])]
    told = words(judged(build_logs=logs))
    assert message in told and command in told and f"less {PATH}" in told


def package(name: str, manager: str = "dpkg") -> DriverPackage:
    return DriverPackage(manager=manager, name=name, version="535.104.05-1")


@pytest.mark.parametrize(
    ("names", "system", "command"),
    [
        (
            ["linux-modules-nvidia-535-server-open-5.15.0-113-generic", "nvidia-utils-535"],
            {},
            "sudo apt install linux-modules-nvidia-535-server-open-$(uname -r)",
        ),
        (["nvidia-open", "nvidia-utils"], {"os_id": "arch"}, "pacman -S --needed nvidia-open-dkms"),
        (["akmod-nvidia"], {"os_id": "fedora"}, "sudo akmods --force --kernels $(uname -r)"),
        (["nvidia-dkms"], {"os_id": "manjaro", "os_like": ["arch"]}, "sudo dkms autoinstall"),
        (["nvidia-drivers"], {"os_id": "gentoo"}, "sudo emerge --ask @module-rebuild"),
        ([], {"os_id": "nixos"}, "sudo nixos-rebuild boot"),
    ],
)
def test_the_module_is_built_as_the_system_does_it(
    names: list[str], system: dict[str, Any], command: str
) -> None:
    found = words(judged(driver_packages=[package(name) for name in names], dkms=ABSENT, **system))
    assert command in found


def test_a_failed_build_for_the_next_kernel() -> None:
    logs = [BuildLog(path=PATH, kernel=NOW, lines=["error: conflicting types for 'x'"])]
    ahead = whole(kernel=kernel(kernels_installed=[RELEASE, NOW], build_logs=logs))
    result = diagnosed(ahead)["KRN-003"]
    assert result.outcome == "warn" and "newer driver" in words(result)


def test_the_running_kernels_modules_are_gone() -> None:
    """pacman -Syu and no reboot."""
    result = judged(
        kernels_installed=[RELEASE], headers=[RELEASE], module_files=[], dkms=ABSENT, os_id="arch"
    )
    assert "not on disk any more" in words(result) and result.findings[0].remedy is not None
    assert result.findings[0].remedy.commands == ["sudo fuser -v /dev/nvidia*", "sudo reboot"]
    assert judged("KRN-001", kernels_installed=[RELEASE]).consequence_of == "KRN-003"


def uvm(**changes: Any) -> CheckResult:
    return diagnosed(no_uvm(whole(kernel=kernel(**changes))))["KRN-007"]


def file(**facts: Any) -> ModuleFile:
    path = f"/lib/modules/{RELEASE}/updates/dkms/nvidia.ko"
    return ModuleFile(kernel=RELEASE, path=path, version="535.104.05", **facts)


def test_uvm_is_loaded_where_it_is_on_disk_and_installed_where_it_is_not() -> None:
    assert "modprobe nvidia-uvm" in words(uvm(module_files=[file(uvm=True)]))
    assert "modprobe nvidia-uvm" in words(uvm(module_files=[file()]))
    told = words(uvm(module_files=[file(uvm=False)]))
    assert "not on disk" in told and "apt install --reinstall nvidia-dkms-535" in told
    assert "modprobe" not in told
