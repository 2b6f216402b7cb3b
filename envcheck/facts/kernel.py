"""Facts about the kernel side of the driver: modules, device nodes, packages, log."""

from __future__ import annotations

from typing import Literal

from .base import NOT_COLLECTED, Address, Facts, Maybe


class KernelModule(Facts, frozen=True, kw_only=True):
    """A loaded module that matters to a GPU: nvidia*, nouveau, vfio_pci, gdrdrv."""

    name: str
    version: Maybe[str] = NOT_COLLECTED
    state: Maybe[Literal["Live", "Loading", "Unloading"]] = NOT_COLLECTED


class ModuleOption(Facts, frozen=True, kw_only=True):
    """What modprobe.d or the kernel's command line sets: in force from the module's next load on."""

    path: str
    module: str  # with underscores: "vfio_pci"
    name: str  # "NVreg_ExcludedGpus"
    value: str


class ConfigLine(Facts, frozen=True, kw_only=True):
    """A line of a file that a machine's owner, its packages or its tools wrote."""

    path: str
    line: str
    module: str = ""  # that it is about: "nvidia_uvm"


class ModuleFile(Facts, frozen=True, kw_only=True):
    """A module on disk, built for one kernel."""

    kernel: str
    path: str
    version: Maybe[str] = NOT_COLLECTED
    flavour: Maybe[Literal["open", "proprietary"]] = NOT_COLLECTED
    uvm: Maybe[bool] = NOT_COLLECTED  # nvidia-uvm is on disk for that kernel, too


class DkmsState(Facts, frozen=True, kw_only=True):
    module: str
    version: str
    kernel: Maybe[str] = NOT_COLLECTED  # absent: added and never built
    state: str  # "added", "built", "installed"


class BuildLog(Facts, frozen=True, kw_only=True):
    """What a failed build of the driver's module left: DKMS's make.log, akmods', the installer's."""

    path: str
    kernel: Maybe[str] = NOT_COLLECTED
    lines: list[str] = []  # those that may hold the reason


class DeviceNode(Facts, frozen=True, kw_only=True):
    path: str
    mode: str  # octal, "0666"
    owner: str
    group: str
    usable: bool  # this user may read and write it
    char_link: Maybe[bool] = NOT_COLLECTED  # /dev/char/MAJOR:MINOR leads back to it


class DriverFile(Facts, frozen=True, kw_only=True):
    """A driver library on disk: libcuda.so.*, libnvidia-ml.so.*; its version from the file name."""

    path: str
    library: str  # "libcuda", "libnvidia-ml"
    version: str
    real_path: str
    # It, or a directory of the driver's around it, is a mount: in a container, what its engine brought in.
    mounted: Maybe[bool] = NOT_COLLECTED


class DriverPackage(Facts, frozen=True, kw_only=True):
    manager: str  # "dpkg", "rpm", "pacman", "portage"
    name: str
    version: str
    state: Maybe[str] = NOT_COLLECTED  # dpkg's: "installed", "unpacked", "half-configured", ...
    held: Maybe[bool] = NOT_COLLECTED  # apt-mark hold


class KernelEvent(Facts, frozen=True, kw_only=True):
    """A line of the kernel log that is about the GPU; lines that differ in numbers only are one."""

    kind: Literal[
        "xid",
        "sxid",
        "module-rejected",
        "module-error",
        "nvrm",
        "fallen-off-bus",
        "driver-load",  # the module was loaded: what was logged before is of its last life
        "gsp",
        "reset-required",
        "gpu-lost",
        "nvlink",
        "uvm",
        "peermem",
        "modeset",
        "pcie",  # of any device on the bus
        "iommu",  # of any device on the bus
        "machine-check",
        "read-only",  # a file system, after an error on it
        "file-server",  # it does not respond, or does again
        "out-of-memory",  # a program was killed
        "processor-hot",  # and slows itself down for it
        "suspend",  # the machine came back from a suspend or hibernation
        "ibt",  # the kernel's indirect branch tracking stopped the driver
        "driver-error",  # another line of the driver's that speaks of a failure
        "stuck",  # the driver's watchdog, a hung task or lockup of a program of the driver's
        "oops",  # the kernel stopped inside the driver's module
    ]
    text: str
    xid: Maybe[int] = NOT_COLLECTED  # of an SXid: its code
    pci_address: Maybe[Address] = NOT_COLLECTED
    seconds: Maybe[float] = NOT_COLLECTED  # since boot, the last time
    count: int = 1  # how often it came


class Service(Facts, frozen=True, kw_only=True):
    """nvidia-fabricmanager, nvidia-persistenced, nvidia-dcgm, nvidia-cuda-mps-control."""

    name: str
    installed: Maybe[bool] = NOT_COLLECTED
    running: Maybe[bool] = NOT_COLLECTED
    version: Maybe[str] = NOT_COLLECTED
    masked: bool = False  # by a link to /dev/null: nothing can start it
    settings: dict[str, str] = {}  # of its configuration file


class Kernel(Facts, frozen=True, kw_only=True):
    release: Maybe[str] = NOT_COLLECTED
    modules: Maybe[list[KernelModule]] = NOT_COLLECTED
    driver_version: Maybe[str] = NOT_COLLECTED  # of the loaded module, /proc/driver/nvidia/version
    driver_flavour: Maybe[Literal["open", "proprietary"]] = NOT_COLLECTED
    driver_parameters: dict[str, str] = {}  # /proc/driver/nvidia/params
    excluded_gpus: list[Address] = []  # "GPU Excluded: Yes" in /proc/driver/nvidia/gpus
    uvm_parameters: dict[str, str] = {}  # of the loaded nvidia-uvm
    module_files: Maybe[list[ModuleFile]] = NOT_COLLECTED
    dkms: Maybe[list[DkmsState]] = NOT_COLLECTED
    build_logs: Maybe[list[BuildLog]] = NOT_COLLECTED  # of builds that failed, newest first
    headers: Maybe[list[str]] = NOT_COLLECTED  # kernels whose headers are on disk
    kernels_installed: Maybe[list[str]] = NOT_COLLECTED  # /lib/modules/*
    device_nodes: Maybe[list[DeviceNode]] = NOT_COLLECTED
    driver_files: Maybe[list[DriverFile]] = NOT_COLLECTED
    driver_packages: Maybe[list[DriverPackage]] = NOT_COLLECTED
    runfile_installer: Maybe[str] = NOT_COLLECTED  # path of its uninstaller; absent: not used
    kept_out: Maybe[list[ConfigLine]] = NOT_COLLECTED  # by modprobe.d and the command line
    udev_rules: list[
        ConfigLine
    ] = []  # on NVIDIA's devices: what removes them, or closes their nodes
    module_options: Maybe[list[ModuleOption]] = NOT_COLLECTED
    reboot_required: Maybe[bool] = NOT_COLLECTED
    reboot_required_by: Maybe[list[str]] = NOT_COLLECTED
    services: list[Service] = []
    log: Maybe[list[KernelEvent]] = NOT_COLLECTED  # since boot, oldest first, the last 200
