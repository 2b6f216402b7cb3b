"""What the checks on the kernel side of the driver share: what is installed, and how to repair it."""

from __future__ import annotations

import re

from ..facts.kernel import DkmsState, DriverFile, ModuleFile
from .driver_state import branch
from .reading import Kernel, SnapshotView, known
from .system_commands import on_system

MODPROBE = "sudo modprobe nvidia"
# In the order in which they let go of each other.
UNLOAD = [
    "nvidia_peermem",
    "nvidia_fs",
    "gdrdrv",
    "nvidia_uvm",
    "nvidia_drm",
    "nvidia_modeset",
    "nvidia",
]
USUAL = UNLOAD[3:]
LOG = "sudo dmesg | grep -iE 'nvrm|nvidia'"
# DKMS modules of NVIDIA's that are not the driver.
NOT_THE_DRIVER = ("nvidia-fs", "nvidia-peermem", "nvidia-p2p")
# Packages that hold a part of the driver itself, by the start of their names.
DRIVER_PACKAGE = re.compile(
    r"(nvidia-(driver|dkms|kernel|utils|headless|compute-utils|open|tesla|legacy)|libnvidia-compute"
    r"|libnvidia-ml|libcuda1|linux-(modules|objects)-nvidia|kmod-nvidia|akmod-nvidia|dkms-nvidia"
    r"|xorg-x11-drv-nvidia|cuda-drivers|nvidia\Z|nvidia-drivers\Z|linux-[a-z0-9-]*nvidia(-open)?\Z)"
)
# Libraries that are meant to be of another version: CUDA's forward compatibility, WSL's own, 32 bits.
BESIDE = re.compile(r"/compat/|/wsl/|/i386-linux-gnu/|/lib32/")
DRIVER_VERSION = re.compile(r"(?:\d+:)?(\d{3,}\.\d+(?:\.\d+)?)")


def upstream(version: str) -> str:
    """The driver's own version in a package's: "1:535.183.01-0ubuntu1" is "535.183.01"; "" if none."""
    match = DRIVER_VERSION.match(version)
    return match.group(1) if match else ""


def driver_packages(kernel: Kernel) -> list[str]:
    """The driver's installed packages as "NAME VERSION"."""
    return [
        f"{package.name} {package.version}"
        for package in known(kernel.driver_packages) or []
        if DRIVER_PACKAGE.match(package.name) and upstream(package.version)
    ]


def driver_files(kernel: Kernel) -> list[DriverFile]:
    """The driver's own libraries on disk."""
    return [file for file in known(kernel.driver_files) or [] if not BESIDE.search(file.path)]


def module_files(kernel: Kernel) -> list[ModuleFile]:
    return known(kernel.module_files) or []


def dkms(kernel: Kernel) -> list[DkmsState]:
    """The driver's own entries in DKMS."""
    return [state for state in known(kernel.dkms) or [] if state.module not in NOT_THE_DRIVER]


def built_for(kernel: Kernel) -> set[str]:
    """The kernels that have the driver's module, by files on disk and by DKMS."""
    kernels = {file.kernel for file in module_files(kernel)}
    kernels |= {known(state.kernel) or "" for state in dkms(kernel) if state.state == "installed"}
    return kernels - {""}


def installed_version(kernel: Kernel) -> str:
    """The version of the driver that is on disk for the running kernel, or of any; "" if unknown."""
    release = known(kernel.release)
    files = sorted(module_files(kernel), key=lambda file: file.kernel != release)
    versions = [known(file.version) for file in files] + [state.version for state in dkms(kernel)]
    versions += [upstream(text.split()[-1]) for text in driver_packages(kernel)]
    return next((version for version in versions if version), "")


def install_driver(view: SnapshotView) -> list[str]:
    """The commands that install a driver on this distribution; none where they are not known."""
    return on_system(view, "install-driver")


def reload_modules(kernel: Kernel) -> str:
    """The command that loads the driver's module anew, or, where none of it is loaded, at all."""
    modules = known(kernel.modules)
    loaded = {module.name for module in modules or []}
    names = USUAL if modules is None else [name for name in UNLOAD if name in loaded]
    return f"sudo modprobe -r {' '.join(names)} && {MODPROBE}" if names else MODPROBE


def modules_on_disk(kernel: Kernel) -> list[str]:
    """The versions of the driver's module that are on disk for the running kernel, each once."""
    return sorted(versions_by_kernel(kernel).get(known(kernel.release) or "", set()))


def versions_by_kernel(kernel: Kernel) -> dict[str, set[str]]:
    """{kernel: versions of the driver's module on disk}, of those whose version is known."""
    found: dict[str, set[str]] = {}
    for file in module_files(kernel):
        if version := known(file.version):
            found.setdefault(file.kernel, set()).add(version)
    for state in dkms(kernel):
        if state.state == "installed" and (name := known(state.kernel)):
            found.setdefault(name, set()).add(state.version)
    return found


def modules_gone(kernel: Kernel) -> bool:
    """Whether the running kernel's modules were taken away with it, as an upgrade does on Arch."""
    release, kernels = known(kernel.release), known(kernel.kernels_installed)
    return bool(kernels and release and release not in (*kernels, *built_for(kernel)))


def uvm_on_disk(kernel: Kernel) -> bool | None:
    """Whether nvidia-uvm is on disk for the running kernel; None where that is not known."""
    release = known(kernel.release)
    told = [known(file.uvm) for file in module_files(kernel) if file.kernel == release]
    return None if not told or None in told else any(told)


def numbers(release: str) -> list[int]:
    """ "6.8.0-45-generic" as numbers that order kernels."""
    words = release.replace("-", ".").split(".")
    return [int(word) for word in words if word.isascii() and word.isdecimal()]


def install_flavour(view: SnapshotView, kernel: Kernel, flavour: str) -> list[str]:
    """The commands that put the open or the proprietary modules in the other ones' place."""
    if known(kernel.runfile_installer):
        return [f"sudo sh NVIDIA-Linux-*.run --kernel-module-type={flavour}"]
    number = branch(known(kernel.driver_version) or installed_version(kernel))
    return on_system(view, f"flavour-{flavour}", branch=number)
