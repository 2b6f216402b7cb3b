"""The driver and its kernel module."""

from __future__ import annotations

from world.machine import LIB, File, Library, Link, Machine, module_on_disk

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


def _other_driver(m: Machine, name: str, module: str | None = None) -> None:
    without_module(m)
    m.modules = [module or name]
    for gpu in m.gpus:
        m.device(gpu.address).files["driver"] = name


def _vfio(m: Machine, index: int) -> None:
    m.of(index).files["driver"] = "vfio-pci"
    m.of(index).files["driver_override"] = "vfio-pci"
    m.modules.append("vfio_pci")
    _gone_from_driver(m, index)


def _gone_from_driver(m: Machine, index: int) -> None:
    """The driver does not have this GPU: those behind it have other numbers."""
    left = [gpu for gpu in m.gpus if gpu.index != index]
    for number, gpu in enumerate(left):
        gpu.change(index=number)
    m.gpus = left


def _secure_boot(m: Machine, line: str) -> None:
    without_module(m)
    m.secure_boot = True
    m.write("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    m.say(line)


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


def _without_uvm(m: Machine) -> None:
    m.modules.remove("nvidia_uvm")
    m.cuda_init = "999 -"


def _forbidden(m: Machine) -> None:
    m.user = True
    for name in (
        "nvidiactl",
        "nvidia-uvm",
        "nvidia-uvm-tools",
        *[f"nvidia{g.minor}" for g in m.gpus],
    ):
        m.write(f"/dev/{name}", File("", 0o000))
    m.nvml_first = ["0 nvmlInit - 4 -"]
    m.smi_out, m.smi_code = "Failed to initialize NVML: Insufficient Permissions\n", 4
    m.cuda_init = "100 -"


def _two_installations(m: Machine) -> None:
    m.write("/usr/bin/nvidia-uninstall", "#!/bin/sh\n")
    for name in ("libcuda", "libnvidia-ml"):
        m.write(
            f"/usr/lib64/{name}.so.550.54.14",
            Library({"libcuda": "cuda", "libnvidia-ml": "nvml"}[name]),
        )
        m.write(f"/usr/lib64/{name}.so.1", Link(f"{name}.so.550.54.14"))


def _needs_open(m: Machine) -> None:
    without_module(m)
    m.flavour = "proprietary"
    m.modules = ["nvidia"]
    m.packages = {name.replace("-open", ""): version for name, version in m.packages.items()}
    for gpu in m.gpus:
        gpu.change(
            name="NVIDIA GeForce RTX 5090", device_id=0x2B85, architecture=10, capability=(12, 0)
        )
        m.device(gpu.address).files["device"] = "0x2b85"
        m.say(
            f"NVRM: The NVIDIA GPU {gpu.address} (PCI ID: 10de:2b85)\\x0aNVRM: installed in this system requires "
            "use of the NVIDIA open kernel modules.",
            f"nvidia {gpu.address}: probe with driver nvidia failed with error -1",
        )


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


def _not_initialised(m: Machine, index: int) -> None:
    address = m.gpu(index).address
    m.say(
        f"NVRM: GPU {address}: RmInitAdapter failed! (0x62:0xffff:2477)",
        f"NVRM: GPU {address}: rm_init_adapter failed, device minor number {index}",
    )
    _gone_from_driver(m, index)


def _blacklisted(m: Machine) -> None:
    without_module(m)
    m.write("/etc/modprobe.d/no-gpu.conf", "blacklist nvidia\ninstall nvidia /bin/false\n")


def _stub(m: Machine) -> None:
    place = "/usr/local/cuda/targets/x86_64-linux/lib/stubs"
    m.write(
        f"{place}/libcuda.so.1",
        Library("versioned", ("POINTER=cuDriverGetVersion", "NUMBER=12080", "VALUE=cuInit")),
    )
    m.environment["LD_LIBRARY_PATH"] = place


def _compat(m: Machine) -> None:
    place = "/usr/local/cuda-12.8/compat"
    m.write(f"{place}/libcuda.so.570.124.06", Library("cuda"))
    m.write(f"{place}/libcuda.so.1", Link("libcuda.so.570.124.06"))
    m.environment["LD_LIBRARY_PATH"] = place
    m.cuda_init = "804 -"


def _no_library(m: Machine, name: str) -> None:
    m.write(f"{LIB}/{name}.so.{m.driver}", None)
    m.write(f"{LIB}/{name}.so.1", None)
    m.write(f"{LIB}/libcuda.so", None)


def _no_userland(m: Machine) -> None:
    _no_library(m, "libnvidia-ml")
    _no_library(m, "libcuda")
    m.write("/usr/bin/nvidia-smi", None)
    for name in [name for name in m.packages if "compute" in name or "utils" in name]:
        del m.packages[name]


add = FAULTS.add
add(
    "the module is not loaded (h100)",
    "h100",
    without_module,
    ("KRN-001", "", "not loaded", "modprobe nvidia"),
    also="PCI-003",
)
add(
    "nouveau holds all GPUs",
    "h100",
    lambda m: _other_driver(m, "nouveau"),
    ("PCI-002", r"GPU|0000:18", r"nouveau", r"blacklist nouveau|modprobe\.d"),
)
add(
    "nova_core holds the GPUs of a workstation",
    "rtx4090",
    lambda m: _other_driver(m, "nova_core", "nova_core"),
    ("PCI-002", r"0000:01:00\.0", r"nova", r"blacklist"),
)
add(
    "vfio-pci holds GPU 2 of 8",
    "h100",
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
        "rtx4090",
        lambda m, line=line: _secure_boot(m, line),
        ("KRN-002", "", r"reject|signed|signature|Secure Boot", r"mokutil|sign"),
        also="KRN-001|PCI-003",
    )
add(
    "a new kernel has no module of the driver",
    "h100",
    lambda m: _new_kernel(m, "5.15.0-130-generic", "5.15.0-133-generic"),
    ("KRN-00[13]|KRN-017", "", r"5\.15\.0-133-generic", r"dkms|linux-headers|apt"),
    also="PCI-003",
)
add(
    "a new kernel has no module of the driver (Rocky)",
    "a100-mig",
    lambda m: _new_kernel(m, "5.14.0-503.15.1.el9_5.x86_64", "5.14.0-503.22.1.el9_5.x86_64"),
    ("KRN-00[13]|KRN-017", "", r"503\.22\.1", r"dkms|kernel-devel|dnf"),
    also="PCI-003",
)
add(
    "libraries updated under the running module",
    "h100",
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
    "rtx4090",
    lambda m: mismatch(m, "575.51.03", "570.124.04"),
    ("DRV-002|KRN-01[789]|DRV-01[234]", "", r"575\.51\.03", r"dkms|apt|install"),
    also="KRN-005|KRN-012|DRV-002",
)
add(
    "nvidia-uvm is not loaded (h100)",
    "h100",
    _without_uvm,
    ("KRN-007", "", "nvidia.uvm", "nvidia-modprobe|modprobe nvidia.uvm"),
)
add(
    "this user may not use the device nodes",
    "t4",
    _forbidden,
    (
        "KRN-006",
        r"/dev/nvidia",
        r"may not|permission|not usable|mode",
        r"udev|group|chmod|usermod|ModifyDeviceFiles|NVreg",
    ),
    also="DRV-001",
)
add(
    "a runfile's libraries beside the packages'",
    "h100",
    _two_installations,
    ("KRN-005", "", r"550\.54\.14", r"nvidia-uninstall|uninstall|remove"),
)
add(
    "the proprietary module on Blackwell",
    "rtx4090",
    _needs_open,
    ("KRN-009", r"0000:01|GPU", r"open", r"open"),
    also="KRN-013|PCI-003",
)
add(
    "a driver too old for the GPU",
    "rtx4090",
    _too_old,
    (
        "KRN-002|KRN-013",
        r"0000:01:00\.0",
        r"not supported by driver 470\.256\.02: it is too old",
        r"newer driver",
    ),
    also="PCI-003|KRN-005",
)
add(
    "the driver could not start GPU 5",
    "h100",
    lambda m: _not_initialised(m, 5),
    ("KRN-013", "0000:ab:00\\.0", "RmInitAdapter|not start|could not", "reset|reboot|power|reseat"),
    also="DRV-007|GPU-001",
)
add(
    "modprobe.d keeps the module out",
    "t4",
    _blacklisted,
    ("KRN-00[12]", "", r"blacklist|kept out|modprobe\.d", r"modprobe\.d|blacklist|no-gpu"),
    also="PCI-003",
)
add(
    "libcuda out of a stubs directory",
    "h100",
    _stub,
    ("DRV-00[45]", "", r"stub", r"LD_LIBRARY_PATH"),
)
add(
    "libcuda of a compat directory on GeForce",
    "rtx4090",
    _compat,
    ("DRV-00[45]", "", r"compat", r"LD_LIBRARY_PATH|compat"),
)
add(
    "no libnvidia-ml",
    "t4",
    lambda m: _no_library(m, "libnvidia-ml"),
    ("DRV-00[13]", "", r"libnvidia-ml", r"install|apt|ldconfig"),
    also="DRV-004|DRV-005",
)
add(
    "the kernel's half of the driver alone",
    "h100",
    _no_userland,
    ("DRV-00[1345]", "", r"librar|libcuda|libnvidia-ml", r"install|apt"),
    also="DRV-00[1345]",
)
