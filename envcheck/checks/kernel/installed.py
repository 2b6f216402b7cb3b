"""Checks on what is installed and running around the driver: reboots due, doubles, fabric manager."""

from __future__ import annotations

import re

from ...facts.kernel import DriverFile
from ..driver_on_disk import driver_files, driver_packages, upstream
from ..driver_state import HOLDERS, REBOOT, container, install_fabric_manager, service
from ..driver_upgrade import replace_runfile
from ..nvidia_devices import kernel_facts, pci_devices
from ..reading import Kernel, Nvml, Skip, SnapshotView, facts_or, known, need
from ..system_commands import on_system
from ..verdicts import (
    Finding,
    Passed,
    Remedy,
    Verdicts,
    about_file,
    check,
    fail,
    warn,
)

_GPU_OR_KERNEL = re.compile(r"linux-(image|modules|headers|generic|base)|nvidia|cuda|libcuda")
_MANAGER = "nvidia-fabricmanager"
_START = f"sudo systemctl enable --now {_MANAGER}"

PENDING = warn(
    "reboot-pending",
    "a reboot is pending",
    "A reboot is pending after an upgrade{of}: what runs now is not what is installed.",
    "Reboot when the machine is idle.",
    HOLDERS,
    REBOOT,
)


@check(
    "KRN-004",
    title="No reboot is pending for the kernel or the driver",
    causes=[PENDING],
    about="After an upgrade of the kernel or the driver, Debian's and Ubuntu's tools note that a reboot is"
    " needed. Until then the old kernel and the old module run beside the new files; what breaks then"
    " breaks at the next reload or reboot.",
    sources=["lyulyul/shine-cluster#30; update-notifier's /run/reboot-required"],
    follows=("PCI-001", "DRV-002", "KRN-003", "KRN-012"),
)
def no_reboot_pending(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    if not need(kernel.reboot_required, "whether a reboot is pending"):
        yield Passed("none")
        return
    asking = known(kernel.reboot_required_by) or []
    ours = [name for name in asking if _GPU_OR_KERNEL.match(name)]
    if asking and not ours:
        yield Passed(f"one is, but only for {', '.join(asking[:4])}")
        return
    evidence = [view.evidence("machine.kernel.reboot_required")]
    if ours:
        evidence.append(view.evidence("machine.kernel.reboot_required_by", ", ".join(ours)))
    yield PENDING.found(evidence=evidence, of=f" of {', '.join(ours[:4])}" if ours else "")


TWO_INSTALLERS = warn(
    "runfile-and-packages",
    "two driver installations are mixed",
    "The driver was installed by NVIDIA's runfile installer and by packages: they overwrite each"
    " other, and the next upgrade leaves a mixture that does not work.",
    "Replace the runfile's installation by the packages, with their kernel module: they are"
    " fetched before anything is removed.",
)
TWO_VERSIONS = warn(
    "libraries-of-two-versions",
    "driver libraries of several versions are mixed",
    "Driver libraries of {count} versions, {versions}, are where the loader looks: programs may get"
    " the wrong one.",
)


@check(
    "KRN-005",
    title="One driver installation, not two",
    causes=[TWO_INSTALLERS, TWO_VERSIONS],
    about="A driver from NVIDIA's runfile installer and one from packages overwrite each other's files, and"
    " the next upgrade of the packages breaks the mixture. Driver libraries of two versions in the loader's"
    " directories are the same trouble: which one a program gets is a matter of chance.",
    sources=["NVIDIA driver README, installation; lyulyul/shine-cluster#30"],
    follows=("PCI-001", "DRV-002", "CTR-012"),
)
def one_installation(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    runfile, packages = known(kernel.runfile_installer), driver_packages(kernel)
    if runfile and packages:
        yield TWO_INSTALLERS.found(
            about_file(runfile),
            [
                view.evidence("machine.kernel.runfile_installer"),
                view.evidence("machine.kernel.driver_packages", ", ".join(packages[:6])),
            ],
            commands=replace_runfile(view, runfile, [text.split()[0] for text in packages]),
        )
    need(kernel.driver_files, "driver libraries")
    files = driver_files(kernel)
    versions = sorted({file.version for file in files})
    if len(versions) > 1:
        paths = ", ".join(file.path for file in files[:6])
        yield TWO_VERSIONS.found(
            evidence=[view.evidence("machine.kernel.driver_files", paths)],
            advice=_extra_libraries(view, kernel, files),
            count=len(versions),
            versions=", ".join(versions),
        )
    elif not (runfile and packages):
        origin = "from the runfile installer" if runfile else "from packages" if packages else ""
        yield Passed(f"{versions[0]} {origin}".strip() if versions else "no driver libraries")


def _extra_libraries(view: SnapshotView, kernel: Kernel, files: list[DriverFile]) -> Remedy:
    loaded = known(kernel.driver_version)
    extra = [file.path for file in files if file.version != loaded]
    if loaded is None or len(extra) == len(files):
        return Remedy(
            "Find out which one belongs to the driver, and remove the other.",
            on_system(view, "owner", names=[file.path for file in files[:6]]),
        )
    return Remedy(
        f"The loaded module is {loaded}: remove the others (the package that owns them, or, where none"
        " does, the files).",
        [*on_system(view, "owner", names=extra[:6]), "sudo ldconfig"],
    )


_ERROR_802 = "nvidia-smi lists the GPUs, and every CUDA program fails with error 802."
STOPPED = fail(
    "fabric-manager-stopped",
    "the fabric manager does not run",
    "The fabric manager does not run on this machine with {switches} NVSwitches: " + _ERROR_802,
    "Start it; it has to be of exactly the driver's version, {driver}.",
    _START,
    f"journalctl -u {_MANAGER} -n 30",
)
NOT_INSTALLED = fail(
    "fabric-manager-not-installed",
    "the fabric manager is not installed",
    "The fabric manager is not installed on this machine with {switches} NVSwitches: " + _ERROR_802,
    "Install and start it; it has to be of exactly the driver's version, {driver}.",
)
OTHER_VERSION = fail(
    "fabric-manager-of-other-version",
    "the fabric manager is of another version",
    "The fabric manager is {version} and the driver {driver}: it refuses to work with another"
    " version, and CUDA programs fail with error 802.",
    "Install the fabric manager of the driver's version.",
)


@check(
    "KRN-011",
    title="The fabric manager runs where there are NVSwitches",
    causes=[STOPPED, NOT_INSTALLED, OTHER_VERSION],
    about="On machines with NVSwitches (HGX, DGX) the fabric manager has to run, in exactly the driver's"
    " version, before CUDA can start: without it nvidia-smi lists the GPUs, and every CUDA program fails"
    " with error 802. Where the GPUs report their fabric as completed, it was set up, perhaps by another"
    " machine, and this passes.",
    sources=["pytorch#35710; NVIDIA fabric manager user guide"],
    follows=("PCI-001", "PCI-002", "PCI-004", "KRN-001", "KRN-002", "DRV-002", "KRN-016"),
)
def fabric_manager(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    switches = sum(device.kind == "nvswitch" for device in pci_devices(view))
    if not switches:
        raise Skip("no NVSwitch on the PCI bus")
    gpus = known(facts_or(view.machine.nvml, Nvml).gpus) or []
    if gpus and all(known(gpu.fabric_state) == "Completed" for gpu in gpus):
        yield Passed("the GPUs report the fabric as completed")
        return
    if container(view):
        raise Skip("the host's services cannot be seen from a container")
    entry = service(view, _MANAGER)
    if entry is None:
        raise Skip("the fabric manager: not in this snapshot")
    running = need(entry.running, "whether the fabric manager runs")
    version, driver = known(entry.version), known(kernel.driver_version)
    other = version and driver and upstream(version) not in ("", driver)
    if version and other:  # which is why it does not run, too
        yield _other_version(view, upstream(version), driver)
    elif running:
        yield Passed(f"running{f', {version}' if version else ''}; {switches} NVSwitches")
    else:
        installed = known(entry.installed) is True
        yield (STOPPED if installed else NOT_INSTALLED).found(
            evidence=[
                view.evidence("machine.kernel.services", f"{_MANAGER}: not running"),
                view.evidence("machine.pci.devices", f"{switches} NVSwitches"),
            ],
            commands=None if installed else [*install_fabric_manager(view), _START],
            switches=switches,
            driver=driver or "not known here",
        )


def _other_version(view: SnapshotView, version: str, driver: str | None) -> Finding:
    return OTHER_VERSION.found(
        evidence=[
            view.evidence("machine.kernel.services", f"{_MANAGER} {version}"),
            view.evidence("machine.kernel.driver_version"),
        ],
        commands=[*install_fabric_manager(view), f"sudo systemctl restart {_MANAGER}"],
        version=version,
        driver=driver,
    )
