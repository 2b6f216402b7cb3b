"""Checks on the PCI bus: is there a GPU, which driver holds it, does it answer."""

from __future__ import annotations

from ..driver_state import REBOOT, REPORT, on_wsl, then_reboot
from ..nvidia_devices import (
    NVIDIA_DRIVERS,
    ON_WSL,
    device_evidence,
    driver_name,
    event_evidence,
    held_for_guests,
    is_loaded,
    known_kernel,
    listed_gpus,
    pci_devices,
    pci_gpus,
    summary,
)
from ..on_the_bus import NVIDIA_DEVICES
from ..reading import CannotJudge, PciDevice, Skip, SnapshotView, Unavailable, facts_of, known, need
from ..system_commands import on_system
from ..verdicts import (
    Cause,
    Evidence,
    Finding,
    Passed,
    Verdicts,
    about_device,
    about_device_at,
    check,
    fail,
    unjudged,
    warn,
)

# Drivers of the kernel's own that take an NVIDIA GPU before NVIDIA's driver can.
RIVALS = ("nouveau", "nova_core")

NO_GPU = fail(
    "no-gpu",
    "no NVIDIA GPU on the PCI bus",
    "{what}: nothing here can use CUDA.",
    "In a virtual machine or a cloud, choose a type with a GPU, or pass one through from the host. On a"
    " machine that does hold a card: check its seating and power cables, and the firmware settings for the"
    " slot and for memory mapped above 4 GB.",
    NVIDIA_DEVICES,
    "sudo dmesg | grep -i 'pci.*BAR'",
)


@check(
    "PCI-001",
    title="An NVIDIA GPU is on the PCI bus",
    causes=(NO_GPU,),
    about="Without an NVIDIA GPU that the kernel sees, nothing else about the driver, CUDA or a framework"
    " can be judged. Judged by the PCI devices in /sys, which are there without any driver; a GPU that only"
    " the driver lists (on an embedded system or in a sandbox that hides /sys) counts too.",
    sources=["Linux kernel documentation, sysfs-pci; lspci(8)"],
)
def gpu_present(view: SnapshotView) -> Verdicts:
    if on_wsl(view):
        raise Skip(ON_WSL)
    listed = listed_gpus(view)
    devices = facts_of(view.machine.pci, "PCI devices").devices
    if not isinstance(devices, Unavailable):
        gpus = [device for device in devices if device.kind == "gpu"]
        if gpus:
            names = [listed.get(gpu.address) or known(gpu.name) or gpu.device_id for gpu in gpus]
            yield Passed(summary(names))
            return
        what = "No NVIDIA GPU is on this machine's PCI bus"
    else:
        if devices.unavailable != "absent" and not listed:
            need(devices, "PCI devices")
        what = "This machine has no PCI bus that could carry an NVIDIA GPU"
    kernel = known_kernel(view)
    if listed:
        yield Passed(f"{summary(list(listed.values()))}, listed by the driver")
    elif kernel is not None and is_loaded(kernel, "nvgpu"):
        raise Skip("the GPU of this system on a chip (Tegra) is not on PCI")
    else:
        yield NO_GPU.found(evidence=[view.evidence("machine.pci.devices")], what=what)


RIVAL = fail(
    "held-by-kernel-driver",
    "is held by another driver",
    "The kernel's own driver {driver} holds this GPU: NVIDIA's driver cannot have it, and nothing can use"
    " CUDA on it.",
    "Blacklist {driver}{already}, rebuild the initial RAM disk, and reboot; then install NVIDIA's driver if"
    " it is not installed yet.",
)
FOREIGN = warn(
    "held-by-foreign-driver",
    "is held by another driver",
    "A driver that is not NVIDIA's, {driver}, holds this GPU: CUDA cannot use it.",
)
_PASSTHROUGH = (
    "is held for a virtual machine",
    "{driver} holds this GPU for a virtual machine: it cannot be used on this machine itself.",
    "If the GPU is meant for this machine: remove its device id from vfio-pci's options and from the kernel's"
    " command line, rebuild the initial RAM disk, and reboot.",
)
ALL_PASSED_THROUGH = Cause("all-held-for-guests", "fail", *_PASSTHROUGH)
PASSED_THROUGH = Cause("held-for-guest", "warn", *_PASSTHROUGH)


@check(
    "PCI-002",
    title="No other driver holds the GPUs",
    causes=(RIVAL, FOREIGN, ALL_PASSED_THROUGH, PASSED_THROUGH),
    about="The kernel's own drivers nouveau and nova_core take a GPU at boot, and NVIDIA's driver cannot"
    " have it then. They have to be kept out, in the initial RAM disk too.",
    sources=["NixOS/nixpkgs#16711; beclab/Olares#3963"],
    follows=("PCI-001",),
)
def no_other_driver(view: SnapshotView) -> Verdicts:
    gpus = pci_gpus(view)
    held = [gpu for gpu in gpus if held_for_guests(gpu)]
    for gpu in gpus:
        name, subject = driver_name(gpu), about_device(gpu)
        if gpu in held:
            cause = ALL_PASSED_THROUGH if len(held) == len(gpus) else PASSED_THROUGH
            evidence = device_evidence(view, gpu, "driver", "driver_override")
            see = "grep -rn vfio /etc/modprobe.d /proc/cmdline"
            commands = [see, *on_system(view, "initramfs"), REBOOT]
            yield cause.found(subject, evidence, commands=commands, driver=known(gpu.driver))
        elif name in RIVALS:
            yield _rival(view, gpu, name)
        elif name is not None and name not in NVIDIA_DRIVERS:
            evidence = device_evidence(view, gpu, "driver")
            yield FOREIGN.found(subject, evidence, driver=known(gpu.driver))
    bound = sum(driver_name(gpu) in NVIDIA_DRIVERS for gpu in gpus)
    yield Passed(f"{bound} of {len(gpus)} bound to nvidia")


def _rival(view: SnapshotView, gpu: PciDevice, driver: str) -> Finding:
    kernel = known_kernel(view)
    evidence, commands = device_evidence(view, gpu, "driver"), on_system(view, "initramfs")
    blacklisted = kernel is not None and driver in (known(kernel.blacklisted) or [])
    if blacklisted:
        evidence.append(view.evidence("machine.kernel.blacklisted"))
    else:
        lines = f"blacklist {driver}\\n"
        if driver == "nouveau":
            lines += "options nouveau modeset=0\\n"
        write = f"printf '{lines}' | sudo tee /etc/modprobe.d/blacklist-{driver}.conf"
        commands = [write, *commands]
    return RIVAL.found(
        about_device(gpu),
        evidence,
        commands=then_reboot(commands),
        driver=driver,
        already=" (it is already)" if blacklisted else "",
    )


UNBOUND = fail(
    "no-driver-bound",
    "is not driven by NVIDIA's driver",
    "{why}; nothing can use it.",
    "Read the driver's messages in the kernel log; install the branch that supports this GPU.",
    "sudo dmesg | grep -iE 'nvrm|nvidia'",
    "nvidia-smi -L",
    "sudo modprobe nvidia",
)


@check(
    "PCI-003",
    title="NVIDIA's driver is bound to every GPU",
    causes=(UNBOUND,),
    about="A GPU to which no driver is bound cannot be used. If the nvidia module is loaded, it has refused"
    " this GPU: its branch does not support it, or could not start it; the kernel log says why.",
    sources=["Linux kernel documentation, sysfs-pci; NVIDIA driver README, supported GPUs"],
    follows=("PCI-001", "PCI-002", "PCI-004", "KRN-001", "KRN-002", "KRN-009", "KRN-013"),
)
def every_gpu_bound(view: SnapshotView) -> Verdicts:
    gpus, listed = pci_gpus(view), listed_gpus(view)
    unbound = [gpu for gpu in gpus if _is_unbound(gpu) and gpu.address not in listed]
    if not unbound:
        if not listed and all(known(gpu.driver) is None for gpu in gpus):
            need(gpus[0].driver, "the bound driver")
        yield Passed("each has a driver")
        return
    kernel = known_kernel(view)
    loaded = None if kernel is None else is_loaded(kernel)
    why = "No driver is bound to this GPU"
    if loaded:
        why = (
            "The nvidia module is loaded and has not taken this GPU: this branch of the driver does not"
            " support it, or could not start it"
        )
    elif loaded is False:
        why += ", since the nvidia module is not loaded"
    for gpu in unbound:
        evidence = device_evidence(view, gpu, "driver")
        if loaded and kernel is not None:
            evidence.append(view.evidence("machine.kernel.driver_version"))
            log = [e for e in known(kernel.log) or [] if known(e.pci_address) == gpu.address]
            evidence += [event_evidence(view, event) for event in log[-3:]]
        yield UNBOUND.found(about_device(gpu), evidence, why=why)


def _is_unbound(gpu: PciDevice) -> bool:
    return isinstance(gpu.driver, Unavailable) and gpu.driver.unavailable == "absent"


FALLEN = fail(
    "off-the-bus",
    "has fallen off the PCI bus",
    "This device has fallen off the PCI bus: jobs on it hang or die, and its results are not reliable until"
    " it has been checked.",
    "Power the machine off and on (a warm reboot may not bring the device back). If it happens again: check"
    " power cables, seating and temperature, then replace the board.",
    f"{REPORT}  # for the vendor, before the reboot",
    "sudo poweroff",
)


@check(
    "PCI-004",
    title="Every device answers on the bus",
    causes=(FALLEN,),
    about="A GPU that has fallen off the bus reads as all ones, and the driver logs Xid 79. Power, heat,"
    " seating or a dying board are the causes.",
    sources=["NVSentinel#155; gpustack/runtime#26; aws/eks-node-monitoring-agent#245"],
    follows=("PCI-001",),
)
def every_device_answers(view: SnapshotView) -> Verdicts:
    devices = [device for device in pci_devices(view) if device.kind in ("gpu", "nvswitch")]
    fallen = _fallen(view)
    if not devices and not fallen:
        raise Skip("no NVIDIA GPU on the PCI bus")
    answering = 0
    for device in devices:
        event = fallen.pop(device.address, None)
        if known(device.answers) is False or event is not None:
            evidence = device_evidence(view, device, "answers", "power_state")
            yield FALLEN.found(about_device(device), evidence + ([event] if event else []))
            continue
        try:
            need(device.answers, "the device's answer")
            answering += 1
        except CannotJudge as why:
            yield unjudged(why, about_device(device))
    for address, event in fallen.items():
        yield FALLEN.found(about_device_at("gpu", address), [event])
    if answering:
        yield Passed(f"{answering} of {len(devices)} answer")
    try:
        need(facts_of(view.machine.kernel, "the kernel log").log, "the kernel log")
    except CannotJudge as why:
        yield unjudged(why)


def _fallen(view: SnapshotView) -> dict[str, Evidence]:
    """The last event of each device that fell off the bus, by address ("" if it names none)."""
    kernel = known_kernel(view)
    events = (known(kernel.log) if kernel is not None else None) or []
    return {
        known(event.pci_address) or "": event_evidence(view, event)
        for event in events
        if event.kind == "fallen-off-bus" or (event.kind == "xid" and known(event.xid) == 79)
    }
