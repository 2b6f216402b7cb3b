"""Checks on the driver's kernel module: is it loaded, built for the running kernel, and the one on disk."""

from __future__ import annotations

from ...data.build_errors import build_errors
from .. import config_lines as config
from .. import driver_on_disk as disk
from .. import nvidia_devices as devices
from ..driver_state import HOLDERS, REBOOT, then_reboot
from ..reading import CannotJudge, Kernel, Skip, SnapshotView, known, need, show
from ..system_commands import on_system
from ..verdicts import Cause, Evidence, Finding, Passed, Verdicts, about, check, fail, warn
from .events import causes_of, declared, found_line


def _not_loaded(key: str, what: str, remedy: str = "", *commands: str) -> Cause:
    sentence = f"{what}: nothing can use the GPU."
    return fail(key, "the nvidia kernel module is not loaded", sentence, remedy, *commands)


BLACKLISTED = _not_loaded(
    "module-blacklisted",
    "The nvidia module is kept out (blacklisted) by {where}, so it was not loaded",
)
NOT_LOADED = _not_loaded(
    "module-not-loaded",
    "The driver {version} is installed and its module is not loaded",
    "Write the list of modules again (depmod), which may lack it, and load it; if that fails, the kernel log"
    " says why.{signed}",
    "sudo depmod -a",
    disk.MODPROBE,
    disk.LOG,
)
STUCK = _not_loaded(
    "module-stuck",
    "The nvidia module hangs in the state {state}, with no driver behind it, as after a crash there",
    "Reboot: a module that hangs in this state can be neither removed nor loaded again.",
    disk.LOG,
    REBOOT,
)
NOT_BUILT = _not_loaded(
    "module-not-built",
    "The driver is installed, and its module was not built for the running kernel",
    "Build it for this kernel and load it.",
)
NO_MODULE = _not_loaded(
    "module-not-installed",
    "A part of the driver is installed, and its kernel module is not",
    "Install the whole driver, with its kernel module.",
)
HALF = _not_loaded(
    "packages-half-installed",
    "The driver's packages are half installed ({half}), and its kernel module is not there",
    "Let the package manager finish; what it then prints of an error is the reason why it stopped.",
)
NO_DRIVER = _not_loaded(
    "driver-not-installed",
    "No NVIDIA driver is installed",
    "Install the driver (Debian: with contrib and non-free enabled; elsewhere: from the distribution or"
    " from NVIDIA's repository), then reboot.",
)
# Lines that say why the module stopped while it was being loaded.
_STOPS = {row: both for row, both in declared("KRN-014").items() if "ibt" in row.kinds}


@check(
    "KRN-001",
    title="The nvidia kernel module is loaded",
    causes=[
        *causes_of(_STOPS),
        BLACKLISTED,
        NOT_LOADED,
        STUCK,
        NOT_BUILT,
        NO_MODULE,
        HALF,
        NO_DRIVER,
    ],
    about="Everything that uses the GPU goes through the kernel module nvidia. If it is not loaded,"
    " nvidia-smi, CUDA and every framework find no GPU.",
    sources=["NVIDIA driver README, common problems; modprobe.d(5)"],
    follows=("PCI-001", "PCI-002", "PCI-004", "KRN-002", "KRN-003", "KRN-009", "KRN-013"),
)
def module_loaded(view: SnapshotView) -> Verdicts:
    kernel = devices.kernel_facts(view)
    runs = devices.driver_runs(view, kernel)
    if runs is None:
        need(kernel.modules, "the loaded modules")
    if runs:
        flavour = show(kernel.driver_flavour)
        kind = f", the {flavour} module" if flavour in ("open", "proprietary") else ""
        yield Passed(f"nvidia {known(kernel.driver_version) or ''}{kind}".replace(" ,", ","))
    elif devices.is_loaded(kernel, "nvgpu"):
        raise Skip("the GPU of this system on a chip (Tegra) has a driver of its own")
    elif _all_held_for_guests(view):
        raise Skip("every GPU is held for a virtual machine")
    else:
        yield _why_not_loaded(view, kernel)


def _all_held_for_guests(view: SnapshotView) -> bool:
    try:
        return all(devices.held_for_guests(gpu) for gpu in devices.pci_gpus(view))
    except CannotJudge:
        return False


def _why_not_loaded(view: SnapshotView, kernel: Kernel) -> Finding:
    states = {one.name: known(one.state) for one in known(kernel.modules) or []}
    if state := states.get("nvidia"):
        evidence = [view.evidence("machine.kernel.modules", f"nvidia is {state}")]
        log = known(kernel.log) or []
        for row in _STOPS:
            if logged := [event for event in log if row.fits(event.kind, event.text)]:
                return found_line(view, _STOPS, row, None, logged)[0]
        oops = [event for event in log if event.kind == "oops"]
        evidence += [devices.event_evidence(view, event) for event in oops[-2:]]
        return STUCK.found(evidence=evidence, state=state)
    evidence = [view.evidence("machine.kernel.modules", "nvidia is not among them")]
    files = [*evidence, view.evidence("machine.kernel.module_files", _files(kernel))]
    if lines := config.keeping_out(view, "nvidia"):
        evidence += config.shown(view, "kept_out", lines)
        advice = config.undo(view, lines, disk.MODPROBE, REBOOT + "  # where that does not load it")
        return BLACKLISTED.found(evidence=evidence, advice=advice, where=config.where(lines))
    if known(kernel.release) in disk.built_for(kernel):
        signed = " Secure Boot is on: a module that is not signed by a known key is refused."
        return NOT_LOADED.found(
            evidence=files,
            version=disk.installed_version(kernel) or "(version not known)",
            signed=signed if known(devices.host_facts(view).secure_boot) else "",
        )
    if disk.built_for(kernel) or disk.dkms(kernel):
        return NOT_BUILT.found(evidence=files, commands=disk.build_module(view))
    installed = ", ".join(_libraries(kernel)[:6]) or known(kernel.runfile_installer)
    evidence.append(view.evidence("machine.kernel.driver_packages", installed))
    install = on_system(view, "install-driver")
    if half := disk.half_installed(kernel):
        evidence.append(view.evidence("machine.kernel.driver_packages", ", ".join(half[:4])))
        finish = [*on_system(view, "finish-upgrade"), disk.MODPROBE]
        return HALF.found(evidence=evidence, commands=finish, half=", ".join(half[:4]))
    if installed:
        return NO_MODULE.found(evidence=evidence, commands=install)
    return NO_DRIVER.found(evidence=evidence, commands=then_reboot(install))


def _libraries(kernel: Kernel) -> list[str]:
    return disk.driver_packages(kernel) or [file.path for file in disk.driver_files(kernel)]


def _files(kernel: Kernel) -> str:
    paths = [file.path for file in disk.module_files(kernel)]
    for state in disk.dkms(kernel):
        name = f"DKMS {state.module} {state.version} {state.state} {known(state.kernel) or ''}"
        paths.append(name.strip())
    return ", ".join(paths[:6]) or "none"


def _not_built(key: str, why: str) -> Cause:
    return fail(
        key,
        "no nvidia module for the running kernel",
        f"The driver's module was not built for the running kernel {{release}}, {{others}}{why}: it cannot"
        " be loaded, and nothing can use the GPU.",
    )


NOT_BUILT_HERE = _not_built("module-not-built", "")
NO_HEADERS = _not_built("headers-not-installed", " (its headers are not installed)")
_FAILED = " (the build failed: {reason})"
BUILD_FAILED = _not_built("build-failed", _FAILED)
BUILD_ERRORS = {error: _not_built(f"build-{error.cause}", _FAILED) for error in build_errors()}
MODULES_GONE = fail(
    "kernel-modules-gone",
    "the running kernel's modules are gone",
    "The modules of the running kernel {release} are no longer on disk, as after an upgrade of the"
    " kernel: no module can be loaded until the reboot, and nothing can use the GPU.",
    "Reboot into the kernel that is installed now.",
    HOLDERS,
    REBOOT,
)


@check(
    "KRN-003",
    title="The driver's module is installed for the running kernel",
    causes=[
        NOT_BUILT_HERE,
        NO_HEADERS,
        BUILD_FAILED,
        *BUILD_ERRORS.values(),
        MODULES_GONE,
    ],
    about="A kernel module works with the one kernel that it was built for. After a kernel upgrade DKMS"
    " rebuilds it, if the new kernel's headers are installed and the build succeeds.",
    sources=["dkms(8); Ubuntu and Debian documentation of the NVIDIA driver"],
    follows=("PCI-001", "PCI-002"),
)
def module_for_running_kernel(view: SnapshotView) -> Verdicts:
    kernel = devices.kernel_facts(view)
    release = need(kernel.release, "the running kernel's release")
    kernels, runs = disk.built_for(kernel), devices.driver_runs(view, kernel)
    if disk.modules_gone(kernel) and not runs:
        fields = ("release", "kernels_installed")
        evidence = [view.evidence(f"machine.kernel.{name}") for name in fields]
        yield MODULES_GONE.found(about("kernel", release), evidence, release=release)
        return
    failure = disk.failed_build(kernel, release)
    if not kernels and not disk.dkms(kernel) and not (failure and _libraries(kernel)):
        need(kernel.module_files, "the driver's modules on disk")
        raise Skip("no module of the driver is on disk")
    files = view.evidence("machine.kernel.module_files", _files(kernel))
    if release not in kernels and not runs:
        cause, why = _why_not_built(view, kernel, release)
        headers = "" if disk.has_headers(kernel, release) else ", once its headers are installed"
        text = (
            f"Build the module for this kernel{headers} (where the distribution ships built modules: the"
            " package for this kernel), or boot a kernel that has it."
        )
        yield cause.found(
            about("kernel", release),
            [view.evidence("machine.kernel.release"), files, *why],
            advice=disk.rebuild(view, kernel, release, text),
            release=release,
            reason=failure.says if failure else "",
            others=f"only for {', '.join(sorted(kernels))}" if kernels else "nor for any other",
        )
        return
    yield Passed(f"built for {release}" if release in kernels else "loaded, from another place")


def _why_not_built(
    view: SnapshotView, kernel: Kernel, release: str
) -> tuple[Cause, list[Evidence]]:
    if failure := disk.failed_build(kernel, release):
        cause = BUILD_ERRORS[failure.error] if failure.error else BUILD_FAILED
        return cause, [failure.evidence(view)]
    if disk.has_headers(kernel, release) is False:
        return NO_HEADERS, [view.evidence("machine.kernel.headers")]
    return NOT_BUILT_HERE, []


_LOADED = "The loaded nvidia module is {loaded}, and {on_disk} is on disk: "
OTHER_ON_DISK = warn(
    "other-module-on-disk",
    "the loaded module is not the one on disk",
    _LOADED + "programs that start with newer libraries will find no GPU until it is reloaded.",
    "Reboot when the machine is idle.",
    HOLDERS,
    REBOOT,
)
HALF_UPGRADED = warn(
    "driver-half-upgraded",
    "the driver is upgraded half-way",
    _LOADED + "the libraries are {libraries}, so after the next reboot no program finds a GPU.",
)


@check(
    "KRN-012",
    title="The loaded module is the one on disk",
    causes=[OTHER_ON_DISK, HALF_UPGRADED],
    about="After an upgrade the old module stays loaded until a reload or a reboot, while new libraries are"
    " on disk. Programs that load these cannot use the GPU.",
    sources=["lyulyul/shine-cluster#30; mozilla/translations#1167"],
    follows=("PCI-001", "KRN-001", "KRN-003", "DRV-002"),
)
def loaded_is_on_disk(view: SnapshotView) -> Verdicts:
    kernel = devices.kernel_facts(view)
    loaded = need(kernel.driver_version, "the loaded module's version")
    need(kernel.release, "the running kernel's release")
    on_disk = disk.modules_on_disk(kernel)
    if not on_disk:
        raise Skip("the version of the module on disk: no file has it")
    if loaded in on_disk:
        yield Passed(loaded)
        return
    libraries = sorted({file.version for file in disk.driver_files(kernel)})
    halfway = bool(libraries) and not set(libraries) & set(on_disk)
    yield (HALF_UPGRADED if halfway else OTHER_ON_DISK).found(
        evidence=[
            view.evidence("machine.kernel.driver_version"),
            view.evidence("machine.kernel.module_files", _files(kernel)),
        ],
        advice=disk.finish(view, kernel, libraries) if halfway else None,
        loaded=loaded,
        on_disk=" and ".join(on_disk),
        libraries=" and ".join(libraries),
    )
