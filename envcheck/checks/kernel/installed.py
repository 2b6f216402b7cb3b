"""Checks on what is installed and running around the driver: reboots due, doubles, fabric manager."""

from __future__ import annotations

import re

from .. import driver_on_disk as disk
from ..declared import declared_causes
from ..driver_state import container, install_fabric_manager, service
from ..nvidia_devices import host_facts, kernel_facts, pci_devices
from ..reading import Gpu, Nvml, Skip, SnapshotView, facts_or, is_absent, known, need
from ..system_commands import on_system, systemctl
from ..verdicts import Finding, Passed, Remedy, Verdicts, about_file, check

CAUSE = declared_causes(__name__)

_GPU_OR_KERNEL = re.compile(r"linux-(image|modules|headers|generic|base)|nvidia|cuda|libcuda")
_MANAGER = "nvidia-fabricmanager"
_START = systemctl("enable --now", _MANAGER)


@check("KRN-004")
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
        yield CAUSE["reboot-pending"].found(evidence=evidence, of=f" of {ours}" if ours else "")


@check("KRN-005")
def one_installation(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    runfile, packages = known(kernel.runfile_installer), disk.packages_of(kernel)
    if runfile and packages:
        names = ", ".join(disk.driver_packages(kernel)[:6])
        yield CAUSE["runfile-and-packages"].found(
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
    yield CAUSE["libraries-of-two-versions"].found(
        evidence=[view.evidence("machine.kernel.driver_files", paths)],
        advice=Remedy(text, [*owner, "sudo ldconfig"]),
        count=len(versions),
        versions=", ".join(versions),
    )


_INFINIBAND = (
    "sudo modprobe -a mlx5_ib ib_umad",
    r"printf 'mlx5_ib\nib_umad\n' | sudo tee /etc/modules-load.d/nvlink5.conf",
    systemctl("restart", _MANAGER),
)
_NVLINK_5 = re.compile(
    r"\bG?B[23]00\b"
)  # HGX and DGX; GPUs whose switches are no PCI devices of NVIDIA's


@check("KRN-011")
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
    own, cause, state = disk.upstream(version), CAUSE["fabric-manager-not-installed"], "not running"
    install = install_fabric_manager(view)
    if own and driver and own != driver:  # which is why it does not run, too
        cause, state = CAUSE["fabric-manager-of-other-version"], own
    elif running:
        yield Passed(f"running{f', {version}' if version else ''}; {switches} NVSwitches")
        return
    commands = [
        *install,
        systemctl("restart", _MANAGER)
        if cause is CAUSE["fabric-manager-of-other-version"]
        else _START,
    ]
    if cause is CAUSE["fabric-manager-not-installed"] and installed:
        cause, commands = (
            CAUSE["fabric-manager-masked"] if entry.masked else CAUSE["fabric-manager-stopped"],
            list(CAUSE["fabric-manager-stopped"].commands),
        )
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
    return CAUSE["fabric-without-infiniband"].found(evidence=evidence, commands=commands, name=name)
