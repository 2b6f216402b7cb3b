"""The checks on the kernel's side: one fault at a time in a healthy machine, and false alarms to avoid."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import h100
import pytest
from judged import checks_of, commands, full_text, results
from kernel_machines import (
    ABSENT,
    ADDRESS,
    AREAS,
    BARE,
    RELEASE,
    event,
    healthy,
    judge,
    only,
    unloaded,
)
from msgspec.structs import replace

from envcheck.data import rows as table_rows
from envcheck.data.kernel import Flavour, flavour_for
from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import CudaDriver, Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import (
    ConfigLine,
    DeviceNode,
    DriverPackage,
    Kernel,
    KernelModule,
    ModuleFile,
    ModuleOption,
)
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot

HERE = ModuleFile(kernel=RELEASE, path="/lib/modules/x/nvidia.ko", version="550.1", flavour="open")
OTHER = ModuleFile(kernel="5.15.0-1-generic", path="/lib/modules/y/nvidia.ko", version="550.1")
NO_DRM = ConfigLine(path="/etc/modprobe.d/d.conf", line="blacklist nvidia-drm", module="nvidia_drm")


def kept_out(path: str, line: str, module: str = "nvidia") -> dict[str, Any]:
    """The module is on disk, and this line keeps it from being loaded."""
    lines = [ConfigLine(path=path, line=line, module=module), NO_DRM]
    return {"kept_out": lines, "module_files": [HERE]}


def package(name: str, version: str, state: str = "installed") -> dict[str, Any]:
    return {
        "driver_packages": [DriverPackage(manager="dpkg", name=name, version=version, state=state)]
    }


def refused(text: str, kind: str = "module-error") -> dict[str, Any]:
    """The module is on disk, and the kernel wrote this when it was to be loaded."""
    return {"module_files": [HERE], "log": [event(text, kind)]}


def test_a_healthy_machine_gives_no_alarm() -> None:
    same = replace(HERE, version=h100.DRIVER)
    found = healthy(
        driver_flavour="open", reboot_required=False, module_files=[same], runfile_installer=ABSENT
    )
    outcomes = {
        code: r.outcome for code, r in results(found, AREAS).items() if code.startswith("KRN")
    }
    assert outcomes and set(outcomes.values()) == {"pass"}


# KRN-001, KRN-002


@pytest.mark.parametrize(
    ("code", "facts", "key", "words"),
    [
        ("KRN-001", kept_out("/etc/modprobe.d/x.conf", "install nvidia /bin/false"), "module-blacklisted",
         "/etc/modprobe.d/x.conf\nsudo update-initramfs"),
        ("KRN-001", kept_out("/lib/modprobe.d/blacklist-nvidia.conf", "alias nvidia off"),
         "module-blacklisted", "prime-select on-demand"),
        ("KRN-001", kept_out("/proc/cmdline", "module_blacklist=nvidia"), "module-blacklisted",
         "update-grub"),
        ("KRN-001", kept_out("/x", "blacklist nvidia-drm", "nvidia_drm"), "module-not-loaded", ""),
        ("KRN-001", package("nvidia-dkms-550", "550.120-1", "half-configured"), "packages-half-installed",
         "dpkg --configure -a"),
        ("KRN-001", package("libnvidia-compute-550", "550.54.15-0ubuntu1"), "module-not-installed",
         "A part of the driver is installed"),
        ("KRN-001", {"module_files": [HERE]}, "module-not-loaded",
         "The driver 550.1 is installed and its module is not loaded"),
        ("KRN-002", refused("nvidia: version magic 'a' should be 'b'"), "module-of-other-kernel",
         "built for another kernel"),
        ("KRN-002", refused("nvidia: Unknown symbol foo (err -2)"), "module-symbols",
         "does not fit the running kernel"),
        ("KRN-002", refused("nvidia: Unknown symbol drm_foo (err -2)"), "graphics-core-not-installed",
         "graphics core (drm)"),
        (
            "KRN-002",
            refused(
                "nvidia_fs: module using GPL-only symbols uses symbols from proprietary module"
            ),
            "symbols-of-the-proprietary-module",
            "kept for free software",
        ),
        ("KRN-002", refused("NVRM: No NVIDIA GPU found.", "nvrm"), "module-found-no-gpu", "found no GPU"),
    ],
)  # fmt: skip
def test_why_the_module_is_not_loaded(
    code: str, facts: dict[str, Any], key: str, words: str
) -> None:
    result = judge(unloaded(**facts), code)
    assert only(result).cause.key == key
    assert words in full_text(result)
    if key == "module-blacklisted":
        assert facts["kept_out"][0].path in full_text(result)
        assert "nvidia-drm" not in full_text(result)


def test_what_loads_it() -> None:
    remedy = only(judge(unloaded(module_files=[HERE]), "KRN-001")).remedy
    assert remedy is not None
    assert remedy.commands[:2] == ["sudo depmod -a", "sudo modprobe nvidia"]
    secure = Host(os_id="debian", secure_boot=True)
    assert "Secure Boot" in full_text(judge(unloaded(secure, module_files=[HERE]), "KRN-001"))


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
    host = Host(**{"secure_boot": True, "wsl": False, "os_id": "ubuntu", **facts})
    lines = refused("Loading of module with unavailable key is rejected", "module-rejected")
    result = judge(unloaded(host, **lines), "KRN-002")
    assert only(result) and words in full_text(result)


def test_a_module_that_hangs_while_it_is_unloaded() -> None:
    oops = event("RIP: 0010:nv_pci_remove+0x9e/0x2f0 [nvidia]", "oops")
    hanging = KernelModule(name="nvidia", state="Unloading")
    found = unloaded(modules=[hanging], module_files=[HERE], log=[oops])
    finding = only(judge(found, "KRN-001"))
    assert finding.cause.key == "module-stuck" and "modprobe" not in commands(finding)
    assert "nv_pci_remove" in finding.evidence[-1].value
    assert {judge(found, code).consequence_of for code in ("PCI-003", "KRN-014")} == {"KRN-001"}


def test_a_sandbox_that_hides_the_modules() -> None:
    """The driver lists its GPUs, and /proc and /sys show neither its module nor that it holds them."""
    assert judge(unloaded(modules=ABSENT), "KRN-001").outcome == "skipped"
    line = event("nvidia: version magic 'a' should be 'b'", "module-error")
    facts = {"modules": [], "driver_version": ABSENT, "module_files": [OTHER], "log": [line]}
    found = h100.machine(
        host=BARE,
        pci=Pci(devices=[h100.pci_device(a, driver=ABSENT) for a in h100.ADDRESSES]),
        kernel=h100.kernel(release=RELEASE, **facts),
    )
    answer = results(found, AREAS)
    assert not [code for code, result in answer.items() if result.findings]


# KRN-006, KRN-007


def node(path: str, **changes: Any) -> DeviceNode:
    values = {"mode": "0666", "owner": "root", "group": "root", "usable": True}
    return DeviceNode(path=path, **{**values, **changes})


PATHS = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia-uvm")
NODES = [node(path) for path in PATHS]
CLOSED = [node(path, usable=False) for path in PATHS]
OF_VIDEO = [node(path, mode="0660", group="video", usable=False) for path in PATHS]
OF_ROOT = [node(PATHS[0], mode="0600", usable=False), *NODES[1:]]
OPTION = ModuleOption(
    path="/etc/modprobe.d/o.conf", module="nvidia", name="NVreg_DeviceFileMode", value="0600"
)
RULE = ConfigLine(path="/etc/udev/rules.d/7.rules", line='KERNEL=="nvidia*", MODE="0600"')
PODMAN = Host(container="podman", selinux="enforcing", wsl=False)


@pytest.mark.parametrize(
    ("host", "facts", "key", "does"),
    [
        (BARE, {"device_nodes": OF_VIDEO}, "nodes-closed", 'sudo usermod -aG video "$USER"'),
        (BARE, {"device_nodes": OF_ROOT}, "nodes-closed", "NVreg_"),
        (BARE, {"device_nodes": OF_ROOT, "module_options": [OPTION]}, "nodes-closed",
         "NVreg_DeviceFileMode /etc/modprobe.d/o.conf"),
        (BARE, {"device_nodes": OF_ROOT, "udev_rules": [RULE]}, "nodes-closed", RULE.path),
        (PODMAN, {"device_nodes": CLOSED}, "nodes-closed", "container_use_devices"),
        # open to all, and closed
        (BARE, {"device_nodes": CLOSED}, "device-cgroup", "/proc/self/cgroup"),
        (BARE, {"device_nodes": [CLOSED[0], OF_VIDEO[1]]}, "device-cgroup", "/proc/self/cgroup"),
    ],
)  # fmt: skip
def test_nodes_that_cannot_be_used(host: Host, facts: dict[str, Any], key: str, does: str) -> None:
    finding = only(judge(healthy(host=host, **facts), "KRN-006"))
    assert finding.cause.key == key
    assert all(word in commands(finding) for word in does.rsplit(" /", 1)) or does in commands(
        finding
    )
    assert key != "device-cgroup" or "chmod" not in commands(finding)
    assert len(facts["device_nodes"]) > 2 or finding.subject == "/dev/nvidiactl"
    assert "udev_rules" not in facts or RULE.path in str(finding.evidence)


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


def test_a_node_without_a_module_that_is_known_to_be_loaded_says_nothing() -> None:
    """NVIDIA's own library makes /dev/nvidiactl when root looks; a sandbox may hide /proc/modules."""
    found = unloaded(modules=ABSENT, device_nodes=NODES[:1])
    assert judge(found, "KRN-006").outcome == "skipped"


UVM_OFF = kept_out("/etc/modprobe.d/u.conf", "blacklist nvidia_uvm", "nvidia_uvm")["kept_out"][:1]
NVIDIA_ALONE = [KernelModule(name="nvidia")]
DOCKER = Host(container="docker", wsl=False)


@pytest.mark.parametrize(
    ("host", "facts", "key", "words"),
    [
        (BARE, {"modules": NVIDIA_ALONE, "device_nodes": NODES[:2], "kept_out": UVM_OFF}, "uvm-kept-out",
         "/etc/modprobe.d/u.conf"),
        (BARE, {"device_nodes": [*NODES[:3], CLOSED[3]]}, "device-cgroup", ""),
        (DOCKER, {"device_nodes": NODES[:3]}, "uvm-node-missing", "nvidia-uvm is missing"),
        (DOCKER, {"device_nodes": NODES[:3], "modules": NVIDIA_ALONE}, "uvm-not-ready", ""),
    ],
)  # fmt: skip
def test_cuda_without_uvm(host: Host, facts: dict[str, Any], key: str, words: str) -> None:
    cuda = CudaDriver(library_path="/x/libcuda.so.1", init_code=999)
    kernel = h100.kernel(release=RELEASE, **facts)
    finding = only(judge(h100.machine(host=host, kernel=kernel, cuda=cuda), "KRN-007"))
    assert finding.cause.key == key
    assert words in finding.headline + commands(finding)


# KRN-009, KRN-013


def test_the_table_of_flavours_has_no_gap() -> None:
    rows = table_rows("kernel_flavours", Flavour)
    ranges = [(int(row.first_device_id, 16), int(row.last_device_id, 16)) for row in rows]
    assert (ranges[0][0], ranges[-1][1]) == (0, 0xFFFF)
    assert all(last + 1 == first for (_, last), (first, _) in pairwise(ranges))
    assert flavour_for("1002:2330") is None
    assert flavour_for("10de:????") is None


@pytest.mark.parametrize(
    ("version", "option"), [("515.57", "-m=kernel"), ("570.1", "--kernel-module-type=proprietary")]
)
def test_the_runfiles_option_for_the_flavour_is_the_branchs(version: str, option: str) -> None:
    machine = unloaded(
        device_id="10de:1db6",
        module_files=[replace(HERE, version=version)],
        runfile_installer="/usr/bin/nvidia-uninstall",
    )
    assert option in commands(only(judge(machine, "KRN-009")))


def failed_start(text: str, lists: bool) -> Snapshot:
    gpus = [h100.gpu(n) for n in range(h100.COUNT) if lists or n != h100.VICTIM]
    return healthy(gpus, log=[event(text, "nvrm", pci_address=ADDRESS)])


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


def test_a_gpu_for_a_virtual_machine_need_not_start() -> None:
    found = failed_start(f"nvidia: probe of {ADDRESS} failed", lists=False)
    devices = [
        h100.pci_device(a, driver="vfio-pci" if a == ADDRESS else "nvidia") for a in h100.ADDRESSES
    ]
    pci = replace(found.machine.pci, facts=Pci(devices=devices))  # type: ignore[type-var]
    given = replace(found, machine=replace(found.machine, pci=pci))
    assert judge(given, "KRN-013").outcome == "pass"


@pytest.mark.parametrize(
    "text",
    [
        "The NVIDIA GPU is supported through the NVIDIA 470.xx Legacy",
        "(PCI ID: 10de:1292) is not supported by the 304.116 NVIDIA Linux",
    ],
)
def test_a_gpu_that_this_release_does_not_support(text: str) -> None:
    log = [event(f"NVRM: {text} drivers", "nvrm"), event("NVRM: No NVIDIA GPU found.", "nvrm")]
    machine = unloaded(module_files=[HERE], log=log)
    assert only(judge(machine, "KRN-013")).cause.key == "needs-legacy-branch"
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
    file = replace(HERE, version=version, flavour="proprietary")
    found = judge(unloaded(device_id=device, module_files=[file]), "KRN-013")
    assert [one.cause.key for one in found.findings] == ([cause] if cause else [])
    assert all(does in commands(one) for one in found.findings)


# KRN-016


def set_option(name: str, value: str, path: str = "/etc/modprobe.d/x.conf") -> dict[str, Any]:
    option = ModuleOption(path=path, module="nvidia", name=f"NVreg_{name}", value=value)
    return {"module_options": [option], "driver_parameters": {name: f'"{value}"'}}


@pytest.mark.parametrize("name", ["ExcludedGpus", "GpuBlacklist"])
def test_an_excluded_gpu_is_its_options(name: str) -> None:
    gpus = [h100.gpu(n) for n in range(h100.COUNT) if n != h100.VICTIM]
    found = healthy(gpus, excluded_gpus=[ADDRESS], **set_option(name, "GPU-6d1f"))
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
    facts = set_option("NvLinkDisable", value) | ({} if params else {"driver_parameters": {}})
    gpus = [h100.gpu(n, **({} if up else {"nvlinks": []})) for n in range(h100.COUNT)]
    assert judge(healthy(gpus, **facts), "KRN-016").outcome == outcome


# All of them


def test_every_check_explains_itself() -> None:
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
