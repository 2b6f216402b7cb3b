"""Why the driver's module is not on disk for a kernel, and what each reason asks for."""

from __future__ import annotations

from typing import Any

import pytest
from corpus_machines import no_uvm, unloaded
from whole import ABSENT, RELEASE, diagnosed, host, kernel, whole

from envcheck.facts.kernel import BuildLog, ModuleFile
from envcheck.findings.model import CheckResult

NOW = "6.8.0-45-generic"
PATH = "/var/lib/dkms/nvidia/535.104.05/build/make.log"

# words of a log → the reason


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
        ("bc is needed by nvidia-kmod-3:590", "bc is not installed", "sudo apt install bc"),
        ("Unmet build dependencies: bc rsync", "bc, rsync", "sudo apt install bc rsync"),
        ("kernel headers for kernel x cannot be found", "headers are missing", "dkms autoinstall"),
    ],
)
def test_each_reason_has_its_remedy(line: str, message: str, command: str) -> None:
    built_by = "The kernel was built by: x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0) 13.2.0"
    logs = [BuildLog(path=PATH, kernel=NOW, lines=[built_by, line])]
    text = words(judged(build_logs=logs))
    assert message in text and command in text and f"less {PATH}" in text


def test_akmods_that_never_built_one() -> None:
    log = BuildLog(
        path="/var/cache/akmods/nvidia/1-for-2.failed.log", kernel=NOW, lines=["error: x"]
    )
    none = {"module_files": [], "dkms": [], "runfile_installer": ABSENT, "driver_packages": []}
    assert "akmods --force" in words(judged(build_logs=[log], **none))
    # what the driver left when it was removed
    assert judged(build_logs=[log], driver_files=[], **none).outcome == "skipped"


def test_headers_that_are_there_are_not_installed_again() -> None:
    assert "linux-headers" not in words(judged())
    text = words(judged(headers=[RELEASE]))
    assert "headers are not installed" in text and "apt install linux-headers-$(uname -r)" in text


def test_the_running_kernels_modules_are_gone() -> None:
    """pacman -Syu and no reboot."""
    result = judged(
        kernels_installed=[RELEASE], headers=[RELEASE], module_files=[], dkms=ABSENT, os_id="arch"
    )
    assert "no longer on disk" in words(result) and result.findings[0].remedy is not None
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
    text = words(uvm(module_files=[file(uvm=False)]))
    assert "not on disk" in text and "apt install --reinstall nvidia-dkms-535" in text
    assert "modprobe" not in text
