"""Checks on what is installed and running around the driver: reboots due, doubles, fabric manager."""

from __future__ import annotations

import re

from .. import driver_on_disk as disk
from ..driver_state import HOLDERS, REBOOT, container, install_fabric_manager, service
from ..nvidia_devices import host_facts, kernel_facts, pci_devices
from ..reading import Gpu, Nvml, Skip, SnapshotView, facts_or, is_absent, known, need
from ..system_commands import on_system, systemctl
from ..verdicts import Finding, Passed, Remedy, Verdicts, about_file, check, fail, warn

_GPU_OR_KERNEL = re.compile(r"linux-(image|modules|headers|generic|base)|nvidia|cuda|libcuda")
_MANAGER = "nvidia-fabricmanager"
_START = systemctl("enable --now", _MANAGER)

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
    " needed. Until then the old kernel and module run beside the new files, and break at the next reload.",
    sources=["lyulyul/shine-cluster#30; update-notifier's /run/reboot-required"],
    follows=("PCI-001", "DRV-002", "KRN-003", "KRN-012"),
)
def no_reboot_pending(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    pending = need(kernel.reboot_required, "whether a reboot is pending")
    asking = known(kernel.reboot_required_by) or []
    ours = ", ".join([name for name in asking if _GPU_OR_KERNEL.match(name)][:4])
    if not pending:
        yield Passed("none")
    elif asking and not ours:
        yield Passed(f"one is, but only for {', '.join(asking[:4])}")
    else:
        evidence = [view.evidence("machine.kernel.reboot_required")]
        if ours:
            evidence.append(view.evidence("machine.kernel.reboot_required_by", ours))
        yield PENDING.found(evidence=evidence, of=f" of {ours}" if ours else "")


TWO_INSTALLERS = warn(
    "runfile-and-packages",
    "two driver installations are mixed",
    "The driver was installed by NVIDIA's runfile installer and by packages: they overwrite each other, and"
    " the next upgrade leaves a mixture that does not work.",
)
TWO_VERSIONS = warn(
    "libraries-of-two-versions",
    "driver libraries of several versions are mixed",
    "Driver libraries of {count} versions, {versions}, are on the loader's path: a program may get the wrong"
    " one.",
)


@check(
    "KRN-005",
    title="One driver installation, not two",
    causes=[TWO_INSTALLERS, TWO_VERSIONS],
    about="A driver from NVIDIA's runfile installer and one from packages overwrite each other's files, and"
    " the next upgrade breaks the mixture.",
    sources=["NVIDIA driver README, installation; lyulyul/shine-cluster#30"],
    follows=("PCI-001", "DRV-002", "CTR-012"),
)
def one_installation(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    runfile, packages = known(kernel.runfile_installer), disk.packages_of(kernel)
    if runfile and packages:
        names = ", ".join(disk.driver_packages(kernel)[:6])
        yield TWO_INSTALLERS.found(
            about_file(runfile),
            [
                view.evidence("machine.kernel.runfile_installer"),
                view.evidence("machine.kernel.driver_packages", names),
            ],
            advice=disk.one_installation(view, kernel),
        )
    need(kernel.driver_files, "driver libraries")
    files = disk.driver_files(kernel)
    versions = sorted({file.version for file in files})
    if len(versions) < 2:
        origin = "from the runfile installer" if runfile else "from packages" if packages else ""
        yield Passed(f"{versions[0]} {origin}".strip() if versions else "no driver libraries")
        return
    loaded = known(kernel.driver_version)
    extra = [file.path for file in files if file.version != loaded]
    text = f"The loaded module is {loaded}: remove the others (the package or the files)."
    if loaded is None or len(extra) == len(files):
        text = "Find out which one belongs to the driver, and remove the other."
    owner = on_system(view, "owner", names=extra[:6])
    paths = ", ".join(file.path for file in files[:6])
    yield TWO_VERSIONS.found(
        evidence=[view.evidence("machine.kernel.driver_files", paths)],
        advice=Remedy(text, [*owner, "sudo ldconfig"]),
        count=len(versions),
        versions=", ".join(versions),
    )


_ON = "on this machine with {switches} NVSwitches: nvidia-smi lists the GPUs, and every CUDA program fails"
STOPPED = fail(
    "fabric-manager-stopped",
    "the fabric manager does not run",
    f"The fabric manager does not run {_ON} with error 802.",
    "Start it; it has to be of exactly the driver's version, {driver}.",
    _START,
    f"journalctl -u {_MANAGER} -n 30",
)
MASKED = STOPPED.variant(
    "fabric-manager-masked",
    headline="the fabric manager is masked",
    sentence=f"The fabric manager is masked (its unit is a link to /dev/null): it does not run {_ON} with"
    " error 802.",
    remedy="Unmask and start it; it has to be of exactly the driver's version, {driver}.",
)
NOT_INSTALLED = fail(
    "fabric-manager-not-installed",
    "the fabric manager is not installed",
    f"The fabric manager is not installed {_ON} with error 802.",
    "Install and start it; it has to be of exactly the driver's version, {driver}.",
)
OTHER_VERSION = fail(
    "fabric-manager-of-other-version",
    "the fabric manager is of another version",
    "The fabric manager is {version} and the driver {driver}: it refuses to work with another version, and"
    " CUDA programs fail with error 802.",
    "Install the fabric manager of the driver's version.",
)

NO_INFINIBAND = fail(
    "fabric-without-infiniband",
    "the fabric manager finds no NVSwitches",
    "This machine has no InfiniBand devices: the NVSwitches of {name} are behind some (mlx5_ib, ib_umad), so"
    " that the fabric manager cannot set up the fabric, and every CUDA program fails with error 802.",
    "Load the modules, at every boot too, and start the fabric manager again. Cloud kernels bring them in a"
    " package of their own.",
    source="NVIDIA/gpu-operator#2781; NVIDIA fabric manager user guide, NVLink 5",
)
_INFINIBAND = (
    "sudo modprobe -a mlx5_ib ib_umad",
    r"printf 'mlx5_ib\nib_umad\n' | sudo tee /etc/modules-load.d/nvlink5.conf",
    systemctl("restart", _MANAGER),
)
_NVLINK_5 = re.compile(
    r"\bG?B[23]00\b"
)  # HGX and DGX; GPUs whose switches are no PCI devices of NVIDIA's


@check(
    "KRN-011",
    title="The fabric manager runs where there are NVSwitches",
    causes=[STOPPED, MASKED, NOT_INSTALLED, OTHER_VERSION, NO_INFINIBAND],
    about="On machines with NVSwitches (HGX, DGX) the fabric manager has to run, in exactly the driver's"
    " version, before CUDA can start: without it every CUDA program fails with error 802.",
    sources=["pytorch#35710; NVIDIA fabric manager user guide"],
    follows=("PCI-001", "PCI-002", "PCI-004", "KRN-001", "KRN-002", "DRV-002"),
)
def fabric_manager(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    switches = sum(device.kind == "nvswitch" for device in pci_devices(view))
    gpus = known(facts_or(view.machine.nvml, Nvml).gpus) or []
    if not switches and (finding := _no_infiniband(view, gpus)):
        yield finding
        return
    if not switches:
        raise Skip("no NVSwitch on the PCI bus")
    if gpus and all(known(gpu.fabric_state) == "Completed" for gpu in gpus):
        yield Passed("the GPUs report the fabric as completed")
        return
    if container(view):
        raise Skip("the host's services cannot be seen from a container")
    entry = service(view, _MANAGER)
    if entry is None:
        raise Skip("the fabric manager: not in this snapshot")
    running, installed = need(entry.running, "whether it runs"), known(entry.installed) is True
    version, driver = known(entry.version) or "", known(kernel.driver_version)
    own, cause, state = disk.upstream(version), NOT_INSTALLED, "not running"
    install = install_fabric_manager(view)
    if own and driver and own != driver:  # which is why it does not run, too
        cause, state = OTHER_VERSION, own
    elif running:
        yield Passed(f"running{f', {version}' if version else ''}; {switches} NVSwitches")
        return
    commands = [
        *install,
        systemctl("restart", _MANAGER) if cause is OTHER_VERSION else _START,
    ]
    if cause is NOT_INSTALLED and installed:
        cause, commands = MASKED if entry.masked else STOPPED, list(STOPPED.commands)
        state = "masked" if entry.masked else state
    yield cause.found(
        evidence=[
            view.evidence("machine.kernel.services", f"{_MANAGER}: {state}"),
            view.evidence("machine.pci.devices", f"{switches} NVSwitches"),
        ],
        commands=commands,
        switches=switches,
        version=own,
        driver=driver or "not known here",
    )


def _no_infiniband(view: SnapshotView, gpus: list[Gpu]) -> Finding | None:
    devices = host_facts(view).rdma_devices
    name = known(gpus[0].name) if gpus else None
    waits = any(known(gpu.fabric_state) in ("Not Started", "In Progress") for gpu in gpus)
    nothing = is_absent(devices) or known(devices) == []
    if container(view) or not (name and _NVLINK_5.search(name) and waits and nothing):
        return None
    evidence = [
        view.evidence("machine.host.rdma_devices"),
        view.gpu_evidence(gpus[0], "fabric_state"),
    ]
    commands = [*on_system(view, "more-kernel-modules"), *_INFINIBAND]
    return NO_INFINIBAND.found(evidence=evidence, commands=commands, name=name)
