"""The driver and its kernel module."""

from __future__ import annotations

from world.contents import File, Library, Link
from world.machine import LIB, Machine, module_on_disk

from ..changes import both, files, machine
from ..model import Collection

FAULTS = Collection("driver and kernel module")
NOT_LOADED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
    "NVIDIA driver is installed and running.\n"
)


def without_module(m: Machine) -> None:
    m.modules = []
    m.nvml_first = ["0 nvmlInit - 9 -"]
    m.cuda_init = "100 -"
    m.smi_out, m.smi_code = NOT_LOADED, 9
    for device in m.devices:
        if device.files.get("driver") in ("nvidia", "nvidia-nvswitch"):
            device.files["driver"] = None
    m.services = []


def _nouveau(m: Machine) -> None:
    without_module(m)
    m.modules = ["nouveau"]
    for gpu in m.gpus:
        m.device(gpu.address).files["driver"] = "nouveau"


def _vfio(m: Machine, index: int) -> None:
    m.of(index).files["driver"] = "vfio-pci"
    m.of(index).files["driver_override"] = "vfio-pci"
    m.modules.append("vfio_pci")
    gone_from_driver(m, index)


def gone_from_driver(m: Machine, index: int) -> None:
    """The driver does not have this GPU: those behind it have other numbers."""
    m.gpus = [gpu for gpu in m.gpus if gpu.index != index]
    for number, gpu in enumerate(m.gpus):
        gpu.change(index=number)


def _new_kernel(m: Machine, old: str, new: str) -> None:
    without_module(m)
    m.kernel = new
    m.files |= dict.fromkeys(module_on_disk(new, m.driver, m.flavour))
    m.files |= module_on_disk(old, m.driver, m.flavour)
    m.write(f"/lib/modules/{old}/kernel/drivers/.keep", "")


def mismatch(m: Machine, libraries: str, on_disk: str | None = None) -> None:
    """The libraries are of another version than the module that runs."""
    m.module_driver = m.driver
    before = m.driver
    m.driver = libraries
    if on_disk != libraries:
        m.files |= dict.fromkeys(module_on_disk(m.kernel, libraries, m.flavour))
        m.files |= module_on_disk(m.kernel, on_disk or before, m.flavour)
    m.packages = {name: version.replace(before, libraries) for name, version in m.packages.items()}
    m.nvml_first = ["0 nvmlInit - 18 -"]
    m.cuda_init = "803 -"
    m.smi_out = f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {libraries[:7]}\n"
    m.smi_code = 18


without_uvm = both(lambda m: m.modules.remove("nvidia_uvm"), machine(cuda_init="999 -"))


def _forbidden(m: Machine) -> None:
    m.user = True
    for gpu in m.gpus:
        m.write(f"/dev/nvidia{gpu.minor}", File("", 0o000))
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"):
        m.write(f"/dev/{name}", File("", 0o000))
    m.nvml_first = ["0 nvmlInit - 4 -"]
    m.smi_out, m.smi_code = "Failed to initialize NVML: Insufficient Permissions\n", 4
    m.cuda_init = "100 -"


def _too_old(m: Machine) -> None:
    """The module gives up where it supports none of the GPUs, and is not loaded then."""
    without_module(m)
    m.driver = "470.256.02"
    m.flavour = "proprietary"
    for gpu in m.gpus:
        m.say(
            f"NVRM: The NVIDIA GPU {gpu.address} (PCI ID: 10de:2684)\\x0aNVRM: installed in this system is not "
            "supported by the\\x0aNVRM: NVIDIA 470.256.02 driver release.\\x0aNVRM: Please see 'Appendix A - Supported "
            "NVIDIA GPU Products'\\x0aNVRM: in this release's README, available on the operating system",
            f"nvidia: probe of {gpu.address} failed with error -1",
        )
    m.say(
        f"NVRM: The NVIDIA probe routine failed for {len(m.gpus)} device(s).",
        "NVRM: None of the NVIDIA devices were initialized.",
        "nvidia-nvlink: Unregistered the Nvlink Core, major device number 510",
    )


def without_library(m: Machine, name: str) -> None:
    m.write(f"{LIB}/{name}.so.{m.driver}", None)
    m.write(f"{LIB}/{name}.so.1", None)
    m.write(f"{LIB}/libcuda.so", None)


def _no_userland(m: Machine) -> None:
    without_library(m, "libnvidia-ml")
    without_library(m, "libcuda")
    m.write("/usr/bin/nvidia-smi", None)
    for name in [name for name in m.packages if "compute" in name or "utils" in name]:
        del m.packages[name]


KEPT_OUT = "blacklist nvidia\ninstall nvidia /bin/false\n"
add = FAULTS.add
add(
    "the module is not loaded (h100)",
    without_module,
    ("KRN-001", "", "not loaded", "modprobe nvidia"),
    also="PCI-003",
)
add(
    "nouveau holds all GPUs",
    _nouveau,
    ("PCI-002", r"GPU|0000:18", r"nouveau", r"blacklist nouveau|modprobe\.d"),
)
add(
    "vfio-pci holds GPU 2 of 8",
    lambda m: _vfio(m, 2),
    ("PCI-002", r"0000:3a:00\.0", r"vfio", r"vfio|driver_override|unbind|driverctl"),
    also="KRN-011|GPU-0(19|2[1-6])",
)
for name, line in (
    ("Secure Boot: the key is unavailable", "Loading of module with unavailable key is rejected"),
    (
        "Secure Boot: Key was rejected by service",
        "systemd-modules-load[412]: Failed to insert module 'nvidia': Key was rejected by service",
    ),
    (
        "lockdown: unsigned module",
        "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
    ),
):
    add(
        name,
        both(
            without_module,
            machine(secure_boot=True),
            files({"/sys/kernel/security/lockdown": "none [integrity] confidentiality\n"}),
            lambda m, line=line: m.say(line),
        ),
        ("KRN-002", "", r"reject|signed|signature|Secure Boot", r"mokutil|sign"),
        base="rtx4090",
        also="KRN-001|PCI-003",
    )
add(
    "a new kernel has no module of the driver",
    lambda m: _new_kernel(m, "5.15.0-130-generic", "5.15.0-133-generic"),
    ("KRN-00[13]|KRN-017", "", r"5\.15\.0-133-generic", r"dkms|linux-headers|apt"),
    also="PCI-003",
)
add(
    "libraries updated under the running module",
    lambda m: mismatch(m, "570.124.06", "570.124.06"),
    (
        "DRV-002",
        "",
        r"570\.86\.15.*570\.124\.06|570\.124\.06.*570\.86\.15",
        r"reboot|modprobe -r|rmmod",
    ),
    also="KRN-012",
)
add(
    "libraries updated, the module on disk is still the old one",
    lambda m: mismatch(m, "575.51.03", "570.124.04"),
    ("DRV-002|KRN-01[789]|DRV-01[234]", "", r"575\.51\.03", r"dkms|apt|install"),
    base="rtx4090",
    also="KRN-005|KRN-012|DRV-002",
)
add(
    "nvidia-uvm is not loaded (h100)",
    without_uvm,
    ("KRN-007", "", "nvidia.uvm", "nvidia-modprobe|modprobe nvidia.uvm"),
)
add(
    "this user may not use the device nodes",
    _forbidden,
    (
        "KRN-006",
        r"/dev/nvidia",
        r"may not|permission|not usable|mode",
        r"udev|group|chmod|usermod|ModifyDeviceFiles|NVreg",
    ),
    base="t4",
    also="DRV-001",
)
add(
    "a runfile's libraries beside the packages'",
    files(
        {
            "/usr/bin/nvidia-uninstall": "#!/bin/sh\n",
            "/usr/lib64/libcuda.so.550.54.14": Library("cuda"),
            "/usr/lib64/libcuda.so.1": Link("libcuda.so.550.54.14"),
            "/usr/lib64/libnvidia-ml.so.550.54.14": Library("nvml"),
            "/usr/lib64/libnvidia-ml.so.1": Link("libnvidia-ml.so.550.54.14"),
        }
    ),
    ("KRN-005", "", r"550\.54\.14", r"nvidia-uninstall|uninstall|remove"),
)
add(
    "a driver too old for the GPU",
    _too_old,
    (
        "KRN-002|KRN-013",
        r"0000:01:00\.0",
        r"not supported by driver 470\.256\.02: .*too old",
        r"newer driver",
    ),
    base="rtx4090",
    also="PCI-003|KRN-005",
)
add(
    "modprobe.d keeps the module out",
    both(without_module, files({"/etc/modprobe.d/no-gpu.conf": KEPT_OUT})),
    ("KRN-00[12]", "", r"blacklist|kept out|modprobe\.d", r"modprobe\.d|blacklist|no-gpu"),
    base="t4",
    also="PCI-003",
)
add(
    "no libnvidia-ml",
    lambda m: without_library(m, "libnvidia-ml"),
    ("DRV-00[13]", "", r"libnvidia-ml", r"install|apt|ldconfig"),
    base="t4",
    also="DRV-004|DRV-005",
)
add(
    "the kernel's half of the driver alone",
    _no_userland,
    ("DRV-00[1345]", "", r"librar|libcuda|libnvidia-ml", r"install|apt"),
    also="DRV-00[1345]",
)
