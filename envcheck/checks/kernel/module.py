"""Checks on the driver's kernel module: is it loaded, built for the running kernel, and the one on disk."""

from __future__ import annotations

from ...data.build_errors import build_errors
from .. import config_lines as config
from .. import driver_on_disk as disk
from .. import nvidia_devices as devices
from ..declared import declared_causes
from ..driver_state import REBOOT, then_reboot
from ..reading import CannotJudge, Kernel, Skip, SnapshotView, known, need, show
from ..system_commands import on_system
from ..verdicts import Cause, Evidence, Finding, Passed, Verdicts, about, check, fail
from .driver_log import RUNNING
from .events import found_line

CAUSE = declared_causes(__name__)


# Lines that say why the module stopped while it was being loaded.
_STOPS = [row for row in RUNNING if "ibt" in row.names]


@check("KRN-001", causes=[cause for row in _STOPS for cause in (row.cause, row.listed) if cause])
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
                return found_line(view, row, None, logged)[0]
        oops = [event for event in log if event.kind == "oops"]
        evidence += [devices.event_evidence(view, event) for event in oops[-2:]]
        return CAUSE["module-stuck"].found(evidence=evidence, state=state)
    evidence = [view.evidence("machine.kernel.modules", "nvidia is not among them")]
    files = [*evidence, view.evidence("machine.kernel.module_files", _files(kernel))]
    if lines := config.keeping_out(view, "nvidia"):
        evidence += config.shown(view, "kept_out", lines)
        advice = config.undo(view, lines, disk.MODPROBE, REBOOT + "  # where that does not load it")
        return CAUSE["module-blacklisted"].found(
            evidence=evidence, advice=advice, where=config.where(lines)
        )
    if known(kernel.release) in disk.built_for(kernel):
        signed = " Secure Boot is on: a module that is not signed by a known key is refused."
        return CAUSE["module-not-loaded"].found(
            evidence=files,
            version=disk.installed_version(kernel) or "(version not known)",
            signed=signed if known(devices.host_facts(view).secure_boot) else "",
        )
    if disk.built_for(kernel) or disk.dkms(kernel):
        return CAUSE["module-not-built"].found(evidence=files, commands=disk.build_module(view))
    installed = ", ".join(_libraries(kernel)[:6]) or known(kernel.runfile_installer)
    evidence.append(view.evidence("machine.kernel.driver_packages", installed))
    install = on_system(view, "install-driver")
    if half := disk.half_installed(kernel):
        evidence.append(view.evidence("machine.kernel.driver_packages", ", ".join(half[:4])))
        finish = [*on_system(view, "finish-upgrade"), disk.MODPROBE]
        return CAUSE["packages-half-installed"].found(
            evidence=evidence, commands=finish, half=", ".join(half[:4])
        )
    if installed:
        return CAUSE["module-not-installed"].found(evidence=evidence, commands=install)
    return CAUSE["driver-not-installed"].found(evidence=evidence, commands=then_reboot(install))


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


_FAILED = " (the build failed: {reason})"
BUILD_ERRORS = {error: _not_built(f"build-{error.cause}", _FAILED) for error in build_errors()}


@check("KRN-003", causes=BUILD_ERRORS.values())
def module_for_running_kernel(view: SnapshotView) -> Verdicts:
    kernel = devices.kernel_facts(view)
    release = need(kernel.release, "the running kernel's release")
    kernels, runs = disk.built_for(kernel), devices.driver_runs(view, kernel)
    if disk.modules_gone(kernel) and not runs:
        fields = ("release", "kernels_installed")
        evidence = [view.evidence(f"machine.kernel.{name}") for name in fields]
        yield CAUSE["kernel-modules-gone"].found(
            about("kernel", release), evidence, release=release
        )
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
        cause = BUILD_ERRORS[failure.error] if failure.error else CAUSE["build-failed"]
        return cause, [failure.evidence(view)]
    if disk.has_headers(kernel, release) is False:
        return CAUSE["headers-not-installed"], [view.evidence("machine.kernel.headers")]
    return CAUSE["module-not-built-here"], []


@check("KRN-012")
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
    yield (CAUSE["driver-half-upgraded"] if halfway else CAUSE["other-module-on-disk"]).found(
        evidence=[
            view.evidence("machine.kernel.driver_version"),
            view.evidence("machine.kernel.module_files", _files(kernel)),
        ],
        advice=disk.finish(view, kernel, libraries) if halfway else None,
        loaded=loaded,
        on_disk=" and ".join(on_disk),
        libraries=" and ".join(libraries),
    )
