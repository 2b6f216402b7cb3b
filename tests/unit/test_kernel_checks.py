"""The checks on the kernel side: one fault at a time in a healthy machine, and false alarms to avoid."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import h100
import msgspec
import pytest
from build import snapshot
from judged import results

from envcheck.data import rows as table_rows
from envcheck.data.kernel import Flavour, flavour_for, xids
from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import CudaDriver, Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import (
    ConfigLine,
    DeviceNode,
    DriverPackage,
    Kernel,
    KernelEvent,
    KernelModule,
    ModuleFile,
    ModuleOption,
)
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult, Finding

ABSENT = Unavailable(unavailable="absent")
RELEASE = "6.8.0-45-generic"
ADDRESS = h100.ADDRESSES[h100.VICTIM]
BARE = Host(os_id="ubuntu", wsl=False, hypervisor=ABSENT, container=ABSENT)
AREAS = ("pci", "kernel")
HERE = ModuleFile(kernel=RELEASE, path="/lib/modules/x/nvidia.ko", version="550.1", flavour="open")
NO_DRM = ConfigLine(path="/etc/modprobe.d/d.conf", line="blacklist nvidia-drm", module="nvidia_drm")
OTHER = ModuleFile(kernel="5.15.0-1-generic", path="/lib/modules/y/nvidia.ko", version="550.1")


def judge(found: Snapshot, code: str) -> CheckResult:
    return results(found, AREAS)[code]


def only(result: CheckResult, level: str = "fail") -> Finding:
    (finding,) = result.findings
    assert finding.level == level
    assert result.outcome == level
    assert finding.evidence
    return finding


def commands(finding: Finding) -> str:
    assert finding.remedy is not None
    return "\n".join(finding.remedy.commands)


def healthy(**kernel: Any) -> Snapshot:
    """The healthy machine with these facts of the kernel."""
    return h100.machine(host=BARE, kernel=h100.kernel(**{"release": RELEASE, **kernel}))


def unloaded(host: Host = BARE, **kernel: Any) -> Snapshot:
    """A machine with the GPUs and without a loaded driver."""
    facts: dict[str, Any] = {
        "release": RELEASE,
        "modules": [],
        "driver_version": ABSENT,
        "driver_flavour": ABSENT,
        "module_files": [],
        "dkms": ABSENT,
        "driver_packages": [],
        "driver_files": [],
        "runfile_installer": ABSENT,
        "kept_out": [],
        "log": [],
        "device_nodes": [],
    }
    devices = [h100.pci_device(address, driver=ABSENT) for address in h100.ADDRESSES]
    return snapshot(
        host=host,
        pci=Pci(devices=devices),
        kernel=Kernel(**{**facts, **kernel}),
        nvml=Nvml(init_code=9),
    )


def test_a_healthy_machine_gives_no_alarm() -> None:
    same = ModuleFile(kernel=RELEASE, path="/lib/modules/x/nvidia.ko", version=h100.DRIVER)
    found = healthy(
        driver_flavour="open", reboot_required=False, module_files=[same], runfile_installer=ABSENT
    )
    outcomes = {
        code: r.outcome for code, r in results(found, AREAS).items() if code.startswith("KRN")
    }
    assert outcomes and set(outcomes.values()) == {"pass"}


# KRN-001


@pytest.mark.parametrize(
    ("path", "line", "does"),
    [
        ("/etc/modprobe.d/x.conf", "install nvidia /bin/false", "/etc/modprobe.d/x.conf"),
        ("/lib/modprobe.d/blacklist-nvidia.conf", "alias nvidia off", "prime-select on-demand"),
        ("/proc/cmdline", "module_blacklist=nvidia", "update-grub"),
    ],
)
def test_blacklisted(path: str, line: str, does: str) -> None:
    lines = [ConfigLine(path=path, line=line, module="nvidia"), NO_DRM]
    finding = only(judge(unloaded(kept_out=lines, module_files=[HERE]), "KRN-001"))
    assert path in finding.message and "nvidia-drm" not in finding.message
    assert does in commands(finding)
    assert judge(unloaded(kept_out=[NO_DRM], module_files=[HERE]), "KRN-001").findings[
        0
    ].cause.key == ("module-not-loaded")


def test_uvm_that_is_kept_out() -> None:
    line = ConfigLine(
        path="/etc/modprobe.d/u.conf", line="blacklist nvidia_uvm", module="nvidia_uvm"
    )
    machine = h100.machine(
        host=BARE,
        kernel=h100.kernel(
            release=RELEASE,
            modules=[KernelModule(name="nvidia")],
            device_nodes=NODES[:2],
            kept_out=[line],
        ),
        cuda=CudaDriver(library_path="/x/libcuda.so.1", init_code=999),
    )
    finding = only(judge(machine, "KRN-007"))
    assert finding.cause.key == "uvm-kept-out" and "/etc/modprobe.d/u.conf" in commands(finding)


def test_packages_that_are_half_installed() -> None:
    half = DriverPackage(
        manager="dpkg", name="nvidia-dkms-550", version="550.120-1", state="half-configured"
    )
    finding = only(judge(unloaded(driver_packages=[half]), "KRN-001"))
    assert finding.cause.key == "packages-half-installed"
    assert "dpkg --configure -a" in commands(finding)


def test_installed_and_not_loaded() -> None:
    finding = only(judge(unloaded(module_files=[HERE]), "KRN-001"))
    assert "The driver 550.1 is installed and its module is not loaded" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands[:2] == ["sudo depmod -a", "sudo modprobe nvidia"]
    secure = Host(os_id="debian", secure_boot=True)
    remedy = only(judge(unloaded(secure, module_files=[HERE]), "KRN-001")).remedy
    assert remedy is not None
    assert "Secure Boot" in remedy.text


def test_a_module_that_hangs_while_it_is_unloaded() -> None:
    oops = KernelEvent(kind="oops", text="RIP: 0010:nv_pci_remove+0x9e/0x2f0 [nvidia]")
    hanging = KernelModule(name="nvidia", state="Unloading")
    found = unloaded(modules=[hanging], module_files=[HERE], log=[oops])
    finding = only(judge(found, "KRN-001"))
    assert finding.cause.key == "module-stuck" and "modprobe" not in commands(finding)
    assert "nv_pci_remove" in finding.evidence[-1].value
    assert {judge(found, code).consequence_of for code in ("PCI-003", "KRN-014")} == {"KRN-001"}


def test_only_a_part_is_installed() -> None:
    package = DriverPackage(
        manager="dpkg", name="libnvidia-compute-550", version="550.54.15-0ubuntu1"
    )
    finding = only(judge(unloaded(driver_packages=[package]), "KRN-001"))
    assert "A part of the driver is installed" in finding.message


def test_unknown_modules_are_no_failure() -> None:
    assert judge(unloaded(modules=ABSENT), "KRN-001").outcome == "skipped"


def test_a_sandbox_that_hides_the_modules() -> None:
    """The driver lists its GPUs, and /proc and /sys show neither its module nor that it holds them."""
    found = h100.machine(
        host=BARE,
        pci=Pci(devices=[h100.pci_device(a, driver=ABSENT) for a in h100.ADDRESSES]),
        kernel=h100.kernel(
            modules=[],
            driver_version=ABSENT,
            release=RELEASE,
            module_files=[OTHER],
            log=[event("nvidia: version magic 'a' should be 'b'", "module-error")],
        ),
    )
    answer = results(found, AREAS)
    assert not [code for code, result in answer.items() if result.findings]


# KRN-002


def event(text: str, kind: Any = "module-rejected", **more: Any) -> KernelEvent:
    return KernelEvent(kind=kind, text=text, **more)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("nvidia: version magic 'a' should be 'b'", "module-error", "built for another kernel"),
        ("nvidia: Unknown symbol foo (err -2)", "module-error", "does not fit the running kernel"),
        ("nvidia: Unknown symbol drm_foo (err -2)", "module-error", "graphics core (drm)"),
        (
            "nvidia_fs: module using GPL-only symbols uses symbols from proprietary module nvidia.",
            "module-error",
            "kept for free software",
        ),
        ("NVRM: No NVIDIA GPU found.", "nvrm", "found no GPU"),
    ],
)
def test_other_refusals(text: str, kind: str, words: str) -> None:
    finding = only(judge(unloaded(module_files=[HERE], log=[event(text, kind)]), "KRN-002"))
    assert words in finding.message


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (
            {"cloud": "azure", "hypervisor": "microsoft", "os_id": "debian"},
            "--enable-secure-boot false",
        ),
        ({"os_id": "fedora", "secure_boot": False}, "grubby --update-kernel=ALL --remove-args="),
    ],
)
def test_secure_boot_is_dealt_with_where_the_machine_is(facts: dict[str, Any], words: str) -> None:
    refused = [event("Loading of module with unavailable key is rejected")]
    found = unloaded(
        Host(**{"secure_boot": True, "wsl": False, "os_id": "ubuntu", **facts}),
        module_files=[HERE],
        log=refused,
    )
    finding = only(judge(found, "KRN-002"))
    assert finding.remedy is not None
    text = "\n".join([finding.remedy.text, *finding.remedy.commands])
    assert words in text


# KRN-006


def node(path: str, **changes: Any) -> DeviceNode:
    values = {"mode": "0666", "owner": "root", "group": "root", "usable": True}
    return DeviceNode(path=path, **{**values, **changes})


NODES = [
    node("/dev/nvidiactl"),
    node("/dev/nvidia0"),
    node("/dev/nvidia1"),
    node("/dev/nvidia-uvm"),
]


@pytest.mark.parametrize("library", [ABSENT, "/usr/lib/libcuda.so.1"])
def test_a_container_that_was_given_nothing(library: Any) -> None:
    found = h100.machine(
        host=Host(container="docker", wsl=False),
        kernel=h100.kernel(device_nodes=[]),
        cuda=CudaDriver(library_path=library, init_code=100),
        nvml=Nvml(init_code=9),
        nvidia_smi=None,
    )
    finding = only(judge(found, "KRN-006"))
    assert ("no library of the driver" in finding.message) is (library is ABSENT)
    assert "docker run --rm --gpus all" in commands(finding)


def test_nodes_of_a_group() -> None:
    nodes = [node(n.path, mode="0660", group="video", usable=False) for n in NODES]
    finding = only(judge(healthy(device_nodes=nodes), "KRN-006"))
    assert 'sudo usermod -aG video "$USER"' in commands(finding)


def test_nodes_of_root() -> None:
    nodes = [node("/dev/nvidiactl", mode="0600", usable=False), *NODES[1:]]
    finding = only(judge(healthy(device_nodes=nodes), "KRN-006"))
    assert "NVreg_" in commands(finding)
    option = ModuleOption(
        path="/etc/modprobe.d/o.conf", module="nvidia", name="NVreg_DeviceFileMode", value="0600"
    )
    finding = only(judge(healthy(device_nodes=nodes, module_options=[option]), "KRN-006"))
    assert "NVreg_DeviceFileMode" in commands(finding) and "/etc/modprobe.d/o.conf" in commands(
        finding
    )
    rule = ConfigLine(path="/etc/udev/rules.d/7.rules", line='KERNEL=="nvidia*", MODE="0600"')
    finding = only(judge(healthy(device_nodes=nodes, udev_rules=[rule]), "KRN-006"))
    assert rule.path in commands(finding) and rule.path in str(finding.evidence)


def test_nodes_that_are_open_to_all_and_closed_are_a_cgroups() -> None:
    closed = [msgspec.structs.replace(one, usable=False) for one in NODES]
    finding = only(judge(healthy(device_nodes=closed), "KRN-006"))
    assert "cgroup" in finding.message
    assert "chmod" not in commands(finding) and "/proc/self/cgroup" in commands(finding)


def test_a_node_without_a_module_that_is_known_to_be_loaded_says_nothing() -> None:
    """NVIDIA's own library makes /dev/nvidiactl when root looks; a sandbox may hide /proc/modules."""
    found = unloaded(modules=ABSENT, device_nodes=NODES[:1])
    assert judge(found, "KRN-006").outcome == "skipped"


def test_only_the_nodes_that_are_open_to_all_are_a_cgroups() -> None:
    nodes = [node("/dev/nvidiactl", usable=False), node("/dev/nvidia0", mode="0660", usable=False)]
    finding = only(judge(healthy(device_nodes=nodes), "KRN-006"))
    assert finding.cause.key == "device-cgroup" and finding.subject == "/dev/nvidiactl"
    uvm = [*NODES[:3], node("/dev/nvidia-uvm", usable=False)]
    broken = h100.machine(
        host=BARE, kernel=h100.kernel(device_nodes=uvm), cuda=CudaDriver(init_code=999)
    )
    assert only(judge(broken, "KRN-007")).cause.key == "device-cgroup"


@pytest.mark.parametrize("loaded", [True, False])
def test_a_container_without_the_node_of_a_module_that_is_loaded(loaded: bool) -> None:
    modules = [m for m in h100.kernel().modules if loaded or m.name != "nvidia_uvm"]
    found = h100.machine(
        host=Host(container="docker", wsl=False),
        kernel=h100.kernel(device_nodes=NODES[:3], modules=modules),
        cuda=CudaDriver(init_code=999),
    )
    finding = only(judge(found, "KRN-007"))
    assert finding.cause.key == ("uvm-node-missing" if loaded else "uvm-not-ready")
    assert ("nvidia-uvm is missing" in finding.headline) is loaded


def test_selinux_keeps_a_container_off() -> None:
    nodes = [node(n.path, usable=False) for n in NODES]
    found = h100.machine(
        host=Host(container="podman", selinux="enforcing", wsl=False),
        kernel=h100.kernel(device_nodes=nodes),
    )
    assert "container_use_devices" in commands(only(judge(found, "KRN-006")))


# KRN-008


def xid(code: int, text: str = "", **more: Any) -> KernelEvent:
    words = text or f"NVRM: Xid (PCI:{ADDRESS}): {code}, pid=7"
    return KernelEvent(kind="xid", text=words, xid=code, pci_address=ADDRESS, seconds=99.6, **more)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (13, "warn"),
        (43, "pass"),
        (48, "fail"),
        (64, "fail"),
        (74, "fail"),
        (92, "warn"),
        (94, "warn"),
        (95, "fail"),
        (119, "fail"),
        (143, "fail"),
        (149, "fail"),
        (157, "fail"),
        (161, "fail"),
    ],
)
def test_xids_by_code(code: int, outcome: str) -> None:
    result = judge(healthy(log=[xid(code, count=3)]), "KRN-008")
    assert result.outcome == outcome
    if outcome == "pass":
        assert f"Xid {code}" in result.detail
    else:
        finding = only(result, outcome)
        assert f"Xid {code}, 3 times" in finding.message
        assert finding.subject == f"GPU 3 NVIDIA H100 80GB HBM3 at {ADDRESS}"
        assert "100 s after boot" in finding.evidence[0].value


NVLINK = f"NVRM: Xid (PCI:{ADDRESS}): %s XC0 i0 Link 13 (%s %s 0x00000000 0x00000000)"


@pytest.mark.parametrize(
    ("code", "words", "information", "status", "outcome", "remedy"),
    [
        (145, "RLW_RXPIPE Nonfatal", "0x00000006", "0x00000001", "warn", "ask the vendor"),
        (145, "RLW_REMAP Nonfatal", "0x00000004", "0x00000100", "pass", ""),
        (145, "RLW_REMAP Nonfatal", "0x00000004", "0x00000004", "warn", "Xid 154 beside it"),
        (145, "RLW_REMAP Fatal", "0x00000004", "0x00000040", "fail", "reset it"),
        (149, "NETIR_LINK_EVT Fatal", "0x025001c6", "0x00000000", "fail", "other end"),
        (149, "NETIR_LINK_EVT Fatal", "0x026001c6", "0x00000000", "warn", "took the link down"),
        (145, "RLW_NEW Nonfatal", "0x00000006", "0x00000001", "warn", "reset them together"),
        (145, "RLW_NEW Fatal", "0x00000006", "0x00000001", "fail", "reset them together"),
    ],
)
def test_nvlink_xids_by_unit_event_and_status(
    code: int, words: str, information: str, status: str, outcome: str, remedy: str
) -> None:
    text = NVLINK % (f"{code}, {words}", information, status)
    result = judge(healthy(log=[xid(code, text)]), "KRN-008")
    assert result.outcome == outcome
    if outcome != "pass":
        advice = only(result, outcome).remedy
        assert advice is not None and remedy in advice.text


@pytest.mark.parametrize(
    ("codes", "key", "level"),
    [
        ((48, 63, 94), "memory-contained", "warn"),
        ((48, 63, 171), "memory-not-contained", "fail"),
        ((48, 94, 95), "memory-not-contained", "fail"),
        ((48, 64, 94), "memory-not-replaceable", "fail"),
        ((48,), "xid-48", "fail"),
    ],
)
def test_xids_of_one_memory_error_are_one_problem(
    codes: tuple[int, ...], key: str, level: str
) -> None:
    gpus = [h100.gpu(n, remap_pending=ABSENT) for n in range(h100.COUNT)]
    log = [xid(code) for code in codes]
    finding = only(
        judge(h100.machine(gpus, host=BARE, kernel=h100.kernel(log=log)), "KRN-008"), level
    )
    assert finding.cause.key == key and len(finding.evidence) == len(codes)
    assert commands(finding).startswith("sudo nvidia-bug-report.sh")


def test_the_recovery_that_bad_memory_asks_for_is_part_of_that_problem() -> None:
    gpus = [h100.gpu(n, remap_pending=ABSENT, recovery_action=ABSENT) for n in range(h100.COUNT)]
    log = [xid(48), xid(64), advice("None", "GPU Reset Required")]
    finding = only(judge(h100.machine(gpus, host=BARE, kernel=h100.kernel(log=log)), "KRN-008"))
    assert finding.cause.key == "memory-not-replaceable" and len(finding.evidence) == len(log)


def test_an_xid_that_came_back_after_a_reset_asks_for_a_replacement() -> None:
    load = KernelEvent(kind="driver-load", text="NVRM: loading NVIDIA UNIX")
    once = only(judge(healthy(log=[load, xid(119)]), "KRN-008"))
    again = only(judge(healthy(log=[xid(119), load, xid(119)]), "KRN-008"))
    assert "--gpu-reset" in commands(once) and "--gpu-reset" not in commands(again)
    assert again.remedy is not None and "RMA" in again.remedy.text
    assert "again after a reset" in again.message


@pytest.mark.parametrize(
    ("count", "other", "alone"), [(5, 31, False), (5, 43, True), (4, 43, False)]
)
def test_page_faults_on_one_gpu_alone(count: int, other: int, alone: bool) -> None:
    elsewhere = msgspec.structs.replace(xid(other), pci_address=h100.ADDRESSES[0])
    result = judge(healthy(log=[xid(31, count=count), elsewhere]), "KRN-008")
    keys = [finding.cause.key for finding in result.findings]
    assert ("xid-on-one-gpu" in keys) == alone
    assert "xid-31" in keys or alone


def test_a_remapped_row_is_over_once_the_gpu_was_reset() -> None:
    gpus = [h100.gpu(n, remap_pending=ABSENT) for n in range(h100.COUNT)]
    found = h100.machine(gpus, host=BARE, kernel=h100.kernel(log=[xid(63)]))
    assert judge(found, "KRN-008").outcome == "warn"


def test_an_xid_that_nobody_knows_is_seen() -> None:
    finding = only(judge(healthy(log=[xid(9999, count=2)]), "KRN-008"), "warn")
    assert finding.message.startswith("Xid 9999, 2 times") and ADDRESS in finding.subject


def advice(before: str, after: str) -> KernelEvent:
    words = f"GPU recovery action changed from 0x0 ({before}) to 0x1 ({after})"
    return xid(154, f"NVRM: Xid (PCI:{ADDRESS}): 154, {words}")


def test_xid_154_that_is_over_or_that_the_gpu_tells_itself_is_mentioned() -> None:
    done = [advice("None", "GPU Reset Required"), advice("GPU Reset Required", "None")]
    assert judge(healthy(log=done), "KRN-008").outcome == "pass"
    gpus = [h100.gpu(n, recovery_action="None") for n in range(h100.COUNT)]
    found = h100.machine(gpus, host=BARE, kernel=h100.kernel(log=done[:1]))
    assert judge(found, "KRN-008").outcome == "pass"


def test_nvswitch_errors() -> None:
    text = "nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Non-fatal, Link 44 Minion"
    quiet = KernelEvent(kind="sxid", text=text, xid=22013, pci_address="0000:04:00.0", count=500)
    assert judge(healthy(log=[quiet]), "KRN-008").outcome == "pass"
    loud = KernelEvent(
        kind="sxid", text=text.replace("Non-fatal", "Fatal"), xid=22013, pci_address="0000:04:00.0"
    )
    assert only(judge(healthy(log=[quiet, loud]), "KRN-008")).subject == "NVSwitch 0000:04:00.0"


def test_the_table_of_xids_is_complete() -> None:
    table = xids()
    assert {13, 31, 43, 45, 48, 61, 62, 63, 64, 69, 74, 79, 92, 94, 95, 119, 120, 140, 143} <= set(
        table
    )
    assert set(range(1, 173)) <= set(table)
    for row in table.values():
        assert row.severity in ("fail", "warn", "info")
        assert row.nonfatal_severity in ("", "fail", "warn", "info")
        assert row.action in ("reset", "reboot", "off", "report", "")
        assert row.meaning
        assert row.remedy
        assert "NVIDIA" in row.source
        assert not row.meaning.endswith(".")
    assert {table[code].severity for code in (13, 31, 69)} == {"warn"}  # an application's faults
    assert {table[code].severity for code in (43, 45)} == {"info"}  # what follows from them
    known_facts = {name for row in table.values() for name in row.settled_by + row.shown_by}
    assert known_facts <= set(h100.gpu().__struct_fields__)


# KRN-009


def test_the_table_of_flavours_has_no_gap() -> None:
    rows = table_rows("kernel_flavours", Flavour)
    ranges = [(int(row.first_device_id, 16), int(row.last_device_id, 16)) for row in rows]
    assert (ranges[0][0], ranges[-1][1]) == (0, 0xFFFF)
    assert all(last + 1 == first for (_, last), (first, _) in pairwise(ranges))
    assert flavour_for("1002:2330") is None
    assert flavour_for("10de:????") is None


# KRN-013


def failed_start(text: str, lists: bool) -> Snapshot:
    event = KernelEvent(kind="nvrm", text=text, pci_address=ADDRESS)
    gpus = [h100.gpu(n) for n in range(h100.COUNT) if lists or n != h100.VICTIM]
    return h100.machine(gpus, host=BARE, kernel=h100.kernel(log=[event]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NVRM: GPU: RmInitAdapter failed! (0x62:0x65:1792)", "could not start"),
        ("NVRM: This PCI I/O region assigned to your NVIDIA device is invalid: BAR1", "no room"),
        ("NVRM: GPU does not have the necessary power cables connected.", "power cables"),
        ("nvidia: Direct firmware load for nvidia/570/gsp_ga10x.bin failed", "firmware (GSP)"),
        ("NVRM: Open nvidia.ko is only ready for use on Data Center GPUs.", "open kernel modules"),
        ("NVRM: GPU: Failed to copy vbios to system memory.", "VBIOS"),
    ],
)
def test_a_gpu_that_could_not_be_started(text: str, words: str) -> None:
    assert words in only(judge(failed_start(text, lists=False), "KRN-013")).message
    assert judge(failed_start(text, lists=True), "KRN-013").outcome == "pass"


# KRN-016


def set_option(name: str, value: str, path: str = "/etc/modprobe.d/x.conf") -> dict[str, Any]:
    option = ModuleOption(path=path, module="nvidia", name=f"NVreg_{name}", value=value)
    return {"module_options": [option], "driver_parameters": {name: f'"{value}"'}}


@pytest.mark.parametrize("name", ["ExcludedGpus", "GpuBlacklist"])
def test_an_excluded_gpu_is_its_options(name: str) -> None:
    gpus = [h100.gpu(n) for n in range(h100.COUNT) if n != h100.VICTIM]
    facts = {**set_option(name, "GPU-6d1f"), "excluded_gpus": [ADDRESS]}
    found = h100.machine(gpus, host=BARE, kernel=h100.kernel(release=RELEASE, **facts))
    finding = only(judge(found, "KRN-016"), "warn")
    assert ADDRESS in finding.subject and f"NVreg_{name}" in finding.message
    assert f" +NVreg_{name}=" in commands(finding) and "/etc/modprobe.d/x.conf" in commands(finding)
    assert results(found, ("driver",))["DRV-007"].outcome == "pass"


@pytest.mark.parametrize(
    ("value", "params", "up", "outcome"),
    [
        ("1", True, False, "warn"),
        ("1", False, False, "warn"),  # the driver does not say: what it is loaded with
        ("1", True, True, "pass"),  # it was set by mistake of another module, or of another boot
        ("0", True, False, "pass"),
    ],
)
def test_nvlink_switched_off(value: str, params: bool, up: bool, outcome: str) -> None:
    facts = set_option("NvLinkDisable", value)
    gpus = [h100.gpu(n, **({} if up else {"nvlinks": []})) for n in range(h100.COUNT)]
    if not params:
        facts["driver_parameters"] = {}
    found = h100.machine(gpus, host=BARE, kernel=h100.kernel(**facts))
    assert judge(found, "KRN-016").outcome == outcome


def test_a_gpu_for_a_virtual_machine_need_not_start() -> None:
    event = KernelEvent(kind="nvrm", text=f"nvidia: probe of {ADDRESS} failed", pci_address=ADDRESS)
    devices = [
        h100.pci_device(a, driver="vfio-pci" if a == ADDRESS else "nvidia") for a in h100.ADDRESSES
    ]
    gpus = [h100.gpu(n) for n in range(h100.COUNT) if n != h100.VICTIM]
    found = h100.machine(gpus, host=BARE, pci=Pci(devices=devices), kernel=h100.kernel(log=[event]))
    assert judge(found, "KRN-013").outcome == "pass"


# All of them


def test_every_check_explains_itself() -> None:
    from judged import checks_of

    for check in checks_of(AREAS):
        assert check.about.count(". ") < 3, check.code
        assert check.sources, check.code
        assert check.code == "PCI-001" or "PCI-001" in check.follows, check.code


@pytest.mark.parametrize("reason", ["not-collected", "absent", "not-supported", "no-permission"])
def test_missing_facts_never_fail(reason: Any) -> None:
    missing = Unavailable(unavailable=reason)
    kernel = Kernel()
    for name in kernel.__struct_fields__:
        if not isinstance(getattr(kernel, name), Unavailable):
            continue
        found = healthy(**{"module_files": [HERE], name: missing})
        for code, result in results(found, AREAS).items():
            assert result.outcome in ("pass", "skipped", "warn"), (name, code, result)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("The NVIDIA GPU is supported through the NVIDIA 470.xx Legacy", "needs-legacy-branch"),
        ("(PCI ID: 10de:1292) is not supported by the 304.116 NVIDIA Linux", "needs-legacy-branch"),
    ],
)
def test_a_gpu_that_this_release_does_not_support(text: str, cause: str) -> None:
    log = [event(f"NVRM: {text} drivers", "nvrm"), event("NVRM: No NVIDIA GPU found.", "nvrm")]
    machine = unloaded(module_files=[HERE], log=log)
    assert only(judge(machine, "KRN-013")).cause.key == cause
    assert judge(machine, "KRN-002").consequence_of == "KRN-013"
    assert judge(machine, "KRN-001").consequence_of == "KRN-013"


@pytest.mark.parametrize(
    ("device", "version", "cause", "does"),
    [
        ("10de:102d", "535.1", "needs-legacy-branch", "nvidia-driver-470"),
        ("10de:1b80", "590.1", "needs-legacy-branch", "nvidia-driver-580"),
        ("10de:2b85", "550.1", "driver-too-old-for-gpu", "ubuntu-drivers"),
        ("10de:06d1", "470.1", "needs-legacy-branch", "nvidia-driver-390"),
        ("10de:1b80", "580.1", "", ""),
    ],
)
def test_branches_that_drive_no_such_gpu(device: str, version: str, cause: str, does: str) -> None:
    file = msgspec.structs.replace(HERE, version=version, flavour="proprietary")
    gpu = h100.pci_device(h100.ADDRESSES[0], driver=ABSENT)
    pci = Pci(devices=[msgspec.structs.replace(gpu, device_id=device)])
    base = unloaded(module_files=[file])
    machine = snapshot(
        host=BARE,
        pci=pci,
        kernel=base.machine.kernel.facts,
        nvml=Nvml(init_code=9),  # type: ignore[union-attr]
    )
    found = judge(machine, "KRN-013")
    assert [one.cause.key for one in found.findings] == ([cause] if cause else [])
    assert all(does in commands(one) for one in found.findings)


@pytest.mark.parametrize(("hypervisor", "words"), [("kvm", True), (ABSENT, False)])
def test_in_a_virtual_machine_the_board_is_the_providers(hypervisor: Any, words: bool) -> None:
    gpus = [h100.gpu(n, remap_failed=n == h100.VICTIM) for n in range(h100.COUNT)]
    host = msgspec.structs.replace(BARE, hypervisor=hypervisor)
    (finding,) = results(h100.machine(gpus, host=host), ("gpu",))["GPU-003"].findings
    assert finding.remedy is not None
    assert ("tell its provider" in finding.remedy.text) is words


@pytest.mark.parametrize(
    ("version", "option"), [("515.57", "-m=kernel"), ("570.1", "--kernel-module-type=proprietary")]
)
def test_the_runfiles_option_for_the_flavour_is_the_branchs(version: str, option: str) -> None:
    file = msgspec.structs.replace(HERE, version=version)
    gpu = msgspec.structs.replace(
        h100.pci_device(h100.ADDRESSES[0], driver=ABSENT), device_id="10de:1db6"
    )
    kernel = unloaded(
        module_files=[file], runfile_installer="/usr/bin/nvidia-uninstall"
    ).machine.kernel
    assert kernel is not None
    machine = snapshot(
        host=BARE, pci=Pci(devices=[gpu]), kernel=kernel.facts, nvml=Nvml(init_code=9)
    )
    assert option in commands(only(judge(machine, "KRN-009")))
