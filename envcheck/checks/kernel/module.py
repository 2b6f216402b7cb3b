"""Checks on the kernel side of the driver: is its module there, loaded, and the right one."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.kernel import Kernel
from ...facts.missing import CannotJudge, Skip
from ...facts.view import SnapshotView, need, show
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..driver_on_disk import (
    LOG,
    MODPROBE,
    built_for,
    dkms,
    driver_files,
    driver_packages,
    install_driver,
    installed_version,
    module_files,
    modules_gone,
    modules_on_disk,
    numbers,
)
from ..driver_state import HOLDERS, REBOOT, then_reboot
from ..driver_upgrade import finish
from ..module_builds import (
    build_module,
    failed_build,
    failure_evidence,
    has_headers,
    rebuild,
)
from ..nvidia_devices import (
    driver_runs,
    held_for_guests,
    host_facts,
    is_loaded,
    kernel_facts,
    pci_gpus,
    rebuild_initramfs,
)
from ..registry import check


@check(
    "KRN-001",
    title="The nvidia kernel module is loaded",
    problem="the nvidia kernel module is not loaded",
    about="Everything that uses the GPU goes through the kernel module nvidia. Where it is not loaded,"
    " nvidia-smi, CUDA and every framework find no GPU. The finding tells the cases apart: no driver is"
    " installed, only its user-space part is, the module is kept out by a blacklist, or it is there and"
    " was not loaded. Where it was built for another kernel or refused by this one, those checks say so.",
    sources=("NVIDIA driver README, common problems", "modprobe.d(5)"),
    follows=("PCI-001", "PCI-002", "KRN-002", "KRN-003", "KRN-009"),
)
def module_loaded(view: SnapshotView) -> Iterator[Verdict]:
    kernel = kernel_facts(view)
    if driver_runs(view, kernel) is None:
        need(kernel.modules, "the loaded modules")
    if driver_runs(view, kernel):
        yield Passed(
            f"nvidia {known(kernel.driver_version) or ''}{_flavour(kernel)}".replace(" ,", ",")
        )
        return
    if is_loaded(kernel, "nvgpu"):
        raise Skip("the GPU of this system on a chip (Tegra) has a driver of its own")
    if _all_held_for_guests(view):
        raise Skip("every GPU is held for a virtual machine")
    yield _not_loaded(view, kernel)


def _flavour(kernel: Kernel) -> str:
    return {"open": ", the open module", "proprietary": ", the proprietary module"}.get(
        show(kernel.driver_flavour), ""
    )


def _all_held_for_guests(view: SnapshotView) -> bool:
    try:
        return all(held_for_guests(gpu) for gpu in pci_gpus(view))
    except CannotJudge:
        return False


def _not_loaded(view: SnapshotView, kernel: Kernel) -> Finding:
    evidence = [view.evidence("machine.kernel.modules", "nvidia is not among them")]
    if "nvidia" in (known(kernel.blacklisted) or []):
        evidence.append(view.evidence("machine.kernel.blacklisted"))
        what = "The nvidia module is blacklisted, so it was not loaded"
        remedy = Remedy(
            "Find the line that keeps it out, take it away (where prime-select wrote it: sudo"
            " prime-select nvidia), rebuild the initial RAM disk, and load the module.",
            [
                "grep -rnE '(blacklist|alias|install) +nvidia' /etc/modprobe.d /run/modprobe.d"
                " /usr/lib/modprobe.d /lib/modprobe.d /proc/cmdline",
                *rebuild_initramfs(view),
                MODPROBE,
            ],
        )
    elif known(kernel.release) in built_for(kernel):
        version = installed_version(kernel)
        evidence.append(view.evidence("machine.kernel.module_files", _files(kernel)))
        what = f"The driver {version or ''} is installed and its module is not loaded".replace(
            "  ", " "
        )
        remedy = _load(view)
    elif built_for(kernel) or dkms(kernel):
        evidence.append(view.evidence("machine.kernel.module_files", _files(kernel)))
        what = "The driver is installed, and its module was not built for the running kernel"
        remedy = Remedy("Build it for this kernel and load it.", build_module(view))
    elif _parts(kernel):
        evidence.append(view.evidence("machine.kernel.driver_packages", _parts(kernel)))
        what = "A part of the driver is installed, and its kernel module is not"
        remedy = Remedy("Install the whole driver, with its kernel module.", install_driver(view))
    else:
        evidence.append(view.evidence("machine.kernel.driver_packages"))
        what = "No NVIDIA driver is installed"
        remedy = Remedy(
            "Install the driver (Debian: with contrib and non-free enabled; elsewhere: from the"
            " distribution or from NVIDIA's repository), then reboot.",
            then_reboot(install_driver(view)),
        )
    return Finding("fail", f"{what}: nothing can use the GPU.", evidence=evidence, remedy=remedy)


def _load(view: SnapshotView) -> Remedy:
    text = "Load it; where that fails, the kernel log says why."
    if known(host_facts(view).secure_boot):
        text += " Secure Boot is on: a module that is not signed by a known key is refused."
    return Remedy(text, [MODPROBE, LOG])


def _files(kernel: Kernel) -> str:
    paths = [file.path for file in module_files(kernel)]
    paths += [
        f"DKMS {s.module} {s.version} {s.state} {known(s.kernel) or ''}" for s in dkms(kernel)
    ]
    return ", ".join(path.strip() for path in paths[:6]) or "none"


def _parts(kernel: Kernel) -> str:
    """What there is of the driver beside its kernel module; "" where there is nothing."""
    parts = driver_packages(kernel) or [file.path for file in driver_files(kernel)]
    return ", ".join(parts[:6]) or known(kernel.runfile_installer) or ""


@check(
    "KRN-003",
    title="The driver's module is installed for the running kernel",
    problem="no nvidia module for the running kernel",
    about="A kernel module works with the one kernel that it was built for. After a kernel upgrade DKMS"
    " rebuilds it, if the new kernel's headers are installed; where that did not happen, the driver"
    " is gone after the reboot. Judged by the module files under /lib/modules and by DKMS's records. A"
    " newer kernel without the module, to be booted next, is a warning. Where a build failed, its log"
    " (DKMS's make.log, akmods', the installer's) tells why: missing headers, another compiler than the"
    " kernel's, a driver that is older than the kernel; where the running kernel's own modules are gone,"
    " as after an upgrade on Arch, a reboot is all that is missing.",
    sources=(
        "dkms(8)",
        "Ubuntu and Debian documentation of the NVIDIA driver",
        "clearlinux/distribution#1835; zen-kernel/zen-kernel#305; CachyOS/linux-cachyos#118",
        "ArchWiki, System maintenance",
    ),
    follows=("PCI-001", "PCI-002"),
)
def module_for_running_kernel(view: SnapshotView) -> Iterator[Verdict]:
    kernel = kernel_facts(view)
    release = need(kernel.release, "the running kernel's release")
    kernels = built_for(kernel)
    if modules_gone(kernel) and not driver_runs(view, kernel):
        yield _modules_gone(view, release)
        return
    if not kernels and not dkms(kernel):
        need(kernel.module_files, "the driver's modules on disk")
        raise Skip("no module of the driver is on disk")
    if release not in kernels and not driver_runs(view, kernel):
        yield _not_built(view, kernel, release, kernels)
        return
    ahead = _newer_without_module(kernel, release, kernels)
    for name in ahead:
        yield Finding(
            "warn",
            f"Kernel {name} is installed and has no nvidia module: once it is booted, the driver is"
            " gone.",
            subjects=about("kernel", name),
            evidence=[
                view.evidence("machine.kernel.module_files", _files(kernel)),
                *_why_not(view, kernel, name)[1],
            ],
            remedy=rebuild(
                view, kernel, name, "Build the module for that kernel before the next reboot."
            ),
        )
    if not ahead:
        yield Passed(f"built for {release}" if release in kernels else "loaded, from another place")


def _not_built(view: SnapshotView, kernel: Kernel, release: str, kernels: set[str]) -> Finding:
    why, evidence = _why_not(view, kernel, release)
    return Finding(
        "fail",
        f"The driver's module was not built for the running kernel {release}"
        + (f", only for {', '.join(sorted(kernels))}" if kernels else ", nor for any other")
        + f"{why}: it cannot be loaded, and nothing can use the GPU.",
        subjects=about("kernel", release),
        evidence=[
            view.evidence("machine.kernel.release"),
            view.evidence("machine.kernel.module_files", _files(kernel)),
            *evidence,
        ],
        remedy=rebuild(
            view,
            kernel,
            release,
            "Build the module for this kernel"
            + ("" if has_headers(kernel, release) else ", once its headers are installed")
            + " (where the distribution ships built modules: the package for this kernel), or boot a kernel"
            " that has it.",
        ),
    )


def _why_not(view: SnapshotView, kernel: Kernel, release: str) -> tuple[str, list[Evidence]]:
    """Why the module was not built for a kernel, as the end of a clause; "" where nothing tells."""
    failure = failed_build(kernel, release)
    if failure is not None:
        says = failure.error.says if failure.error is not None else "its log says why"
        return f" (the build failed: {says})", [failure_evidence(view, failure)]
    if has_headers(kernel, release) is False:
        return " (its headers are not installed)", [view.evidence("machine.kernel.headers")]
    return "", []


def _modules_gone(view: SnapshotView, release: str) -> Finding:
    return Finding(
        "fail",
        f"The modules of the running kernel {release} are not on disk any more, as after an upgrade of the"
        " kernel: no module can be loaded until the reboot, and nothing can use the GPU.",
        subjects=about("kernel", release),
        evidence=[
            view.evidence("machine.kernel.release"),
            view.evidence("machine.kernel.kernels_installed"),
        ],
        remedy=Remedy("Reboot into the kernel that is installed now.", [HOLDERS, REBOOT]),
    )


def _newer_without_module(kernel: Kernel, release: str, kernels: set[str]) -> list[str]:
    """Installed kernels of the running one's flavour that are newer and lack the module."""
    if release not in kernels or any("akmod" in text for text in driver_packages(kernel)):
        return []  # akmods builds at boot
    return [
        name
        for name in known(kernel.kernels_installed) or []
        if name not in kernels
        and numbers(name) > numbers(release)
        and _kernel_flavour(name) == _kernel_flavour(release)
    ]


def _kernel_flavour(release: str) -> str:
    """ "generic" of "6.8.0-45-generic": kernels of one flavour follow each other."""
    return release.rpartition("-")[2].lstrip("0123456789.")


@check(
    "KRN-012",
    title="The loaded module is the one on disk",
    problem="the loaded module is not the one on disk",
    about="After an upgrade the old module stays loaded until a reload or a reboot, while new libraries"
    " and tools are on disk. It works until the two meet, and then no new program can use the GPU."
    " Judged by the version of the loaded module against those on disk for the running kernel.",
    sources=("lyulyul/shine-cluster#30", "mozilla/translations#1167"),
    follows=("PCI-001", "KRN-001", "KRN-003", "DRV-002"),
)
def loaded_is_on_disk(view: SnapshotView) -> Iterator[Verdict]:
    kernel = kernel_facts(view)
    loaded = need(kernel.driver_version, "the loaded module's version")
    need(kernel.release, "the running kernel's release")
    on_disk = modules_on_disk(kernel)
    if not on_disk:
        raise Skip("the version of the module on disk: not told by a file")
    if loaded in on_disk:
        yield Passed(loaded)
        return
    libraries = sorted({file.version for file in driver_files(kernel)})
    halfway = bool(libraries) and not set(libraries) & set(on_disk)
    yield Finding(
        "warn",
        f"The loaded nvidia module is {loaded}, and {' and '.join(on_disk)} is on disk: "
        + (
            f"the libraries are {' and '.join(libraries)}, so after the next reboot no program finds a GPU."
            if halfway
            else "programs that start with newer libraries will not find a GPU until the module is reloaded."
        ),
        evidence=[
            view.evidence("machine.kernel.driver_version"),
            view.evidence("machine.kernel.module_files", _files(kernel)),
        ],
        remedy=finish(view, kernel, libraries)
        if halfway
        else Remedy("Reboot when the machine is idle.", [HOLDERS, REBOOT]),
    )
