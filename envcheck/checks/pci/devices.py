"""Checks on the PCI bus: is there a GPU, who drives it, does it answer, is its link what it can be."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import Unavailable, known
from ...facts.evidence import Evidence
from ...facts.missing import CannotJudge, CouldNotRun, Skip
from ...facts.pci import PciDevice
from ...facts.view import SnapshotView, facts_of, need
from ...findings.model import Finding, Passed, Remedy, Verdict, unjudged
from ...findings.subjects import Subject, about_device, about_device_at
from ..driver_state import REBOOT, on_wsl, then_reboot
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
    rebuild_initramfs,
    summary,
)
from ..on_the_bus import NVIDIA_DEVICES
from ..registry import check

# Drivers of the kernel's own that take an NVIDIA GPU before NVIDIA's driver can.
RIVALS = {"nouveau": "nouveau", "nova_core": "nova_core"}


@check(
    "PCI-001",
    title="An NVIDIA GPU is on the PCI bus",
    problem="no NVIDIA GPU on the PCI bus",
    about="Without an NVIDIA GPU that the kernel sees, nothing else about the driver, CUDA or a"
    " framework can be judged: everything that needs one follows from this finding. Judged by the PCI"
    " devices in /sys, which are there without any driver; a GPU that only the driver lists (on an"
    " embedded system or in a sandbox that hides /sys) counts too.",
    sources=("Linux kernel documentation, sysfs-pci", "lspci(8)"),
)
def gpu_present(view: SnapshotView) -> Iterator[Verdict]:
    if on_wsl(view):
        raise Skip(ON_WSL)
    listed = listed_gpus(view)
    devices = facts_of(view.machine.pci, "PCI devices").devices
    if isinstance(devices, Unavailable):
        if listed:
            yield Passed(f"{summary(list(listed.values()))}, by the driver's word")
            return
        if devices.unavailable != "absent":
            need(devices, "PCI devices")
        yield _no_gpu(view, "This machine has no PCI bus that could carry an NVIDIA GPU")
        return
    gpus = [device for device in devices if device.kind == "gpu"]
    if gpus:
        names = [listed.get(gpu.address) or known(gpu.name) or gpu.device_id for gpu in gpus]
        yield Passed(summary(names))
    elif listed:
        yield Passed(f"{summary(list(listed.values()))}, by the driver's word")
    else:
        kernel = known_kernel(view)
        if kernel is not None and is_loaded(kernel, "nvgpu"):
            raise Skip("the GPU of this system on a chip (Tegra) is not on PCI")
        yield _no_gpu(view, "No NVIDIA GPU is on this machine's PCI bus")


def _no_gpu(view: SnapshotView, what: str) -> Finding:
    return Finding(
        "fail",
        f"{what}: nothing here can use CUDA.",
        evidence=[view.evidence("machine.pci.devices")],
        remedy=Remedy(
            "In a virtual machine or a cloud, choose a type with a GPU, or pass one through from the"
            " host. On a machine that does hold a card: check its seating and power cables, and the"
            " firmware settings for the slot and for memory mapped above 4 GB.",
            [NVIDIA_DEVICES, "sudo dmesg | grep -i 'pci.*BAR'"],
        ),
    )


@check(
    "PCI-002",
    title="No other driver holds the GPUs",
    problem="is held by another driver",
    about="The kernel's own drivers nouveau and nova_core take a GPU at boot, and NVIDIA's driver cannot"
    " have it then: nvidia-smi finds nothing. They have to be kept out, in the initial RAM disk too."
    " A GPU bound to vfio-pci is held for a virtual machine: that is meant, and a warning; where all of"
    " them are, this machine itself has none, and it is a failure.",
    sources=("NixOS/nixpkgs#16711", "beclab/Olares#3963"),
    follows=("PCI-001",),
)
def no_other_driver(view: SnapshotView) -> Iterator[Verdict]:
    gpus = pci_gpus(view)
    for gpu in gpus:
        name = driver_name(gpu)
        if name in RIVALS:
            yield _rival(view, gpu, RIVALS[name])
        elif name is not None and not held_for_guests(gpu) and name not in NVIDIA_DRIVERS:
            yield Finding(
                "warn",
                f"A driver that is not NVIDIA's, {known(gpu.driver)}, holds this GPU: CUDA cannot use it.",
                subjects=about_device(gpu),
                evidence=device_evidence(view, gpu, "driver"),
            )
    yield from _held_for_guests(view, gpus)
    bound = sum(driver_name(gpu) in NVIDIA_DRIVERS for gpu in gpus)
    yield Passed(f"{bound} of {len(gpus)} bound to nvidia")


def _rival(view: SnapshotView, gpu: PciDevice, driver: str) -> Finding:
    kernel = known_kernel(view)
    kept_out = kernel is not None and driver in (known(kernel.blacklisted) or [])
    evidence = device_evidence(view, gpu, "driver")
    commands = rebuild_initramfs(view)
    if kept_out:
        evidence.append(view.evidence("machine.kernel.blacklisted"))
        text = f"{driver} is blacklisted already: rebuild the initial RAM disk, and reboot."
    else:
        text = f"Keep {driver} out, rebuild the initial RAM disk, and reboot; then install NVIDIA's driver"
        text += " where it is not installed yet."
        lines = f"blacklist {driver}\\n" + (
            "options nouveau modeset=0\\n" if driver == "nouveau" else ""
        )
        commands = [
            f"printf '{lines}' | sudo tee /etc/modprobe.d/blacklist-{driver}.conf",
            *commands,
        ]
    return Finding(
        "fail",
        f"The kernel's own driver {driver} holds this GPU: NVIDIA's driver cannot have it, and nothing"
        " can use CUDA on it.",
        subjects=about_device(gpu),
        evidence=evidence,
        remedy=Remedy(text, then_reboot(commands)),
    )


def _held_for_guests(view: SnapshotView, gpus: list[PciDevice]) -> Iterator[Verdict]:
    held = [gpu for gpu in gpus if held_for_guests(gpu)]
    for gpu in held:
        everything = len(held) == len(gpus)
        yield Finding(
            "fail" if everything else "warn",
            f"{known(gpu.driver)} holds this GPU for a virtual machine: "
            + ("like all the others, it" if everything and len(gpus) > 1 else "it")
            + " cannot be used on this machine itself.",
            subjects=about_device(gpu),
            evidence=device_evidence(view, gpu, "driver", "driver_override"),
            remedy=Remedy(
                "Where the GPU is meant for this machine: take its device id out of vfio-pci's options"
                " and off the kernel's command line, rebuild the initial RAM disk, and reboot.",
                [
                    "grep -rn vfio /etc/modprobe.d /proc/cmdline",
                    *rebuild_initramfs(view),
                    REBOOT,
                ],
            ),
        )


@check(
    "PCI-003",
    title="NVIDIA's driver is bound to every GPU",
    problem="is not driven by NVIDIA's driver",
    about="A GPU to which no driver is bound cannot be used. Where the nvidia module is loaded, it has"
    " refused this GPU: because its branch does not support it, or because it could not start it; the"
    " kernel log says why. Where it is not loaded, this follows from that.",
    sources=("Linux kernel documentation, sysfs-pci", "NVIDIA driver README, supported GPUs"),
    follows=("PCI-001", "PCI-002", "PCI-004", "KRN-001", "KRN-002", "KRN-009", "KRN-013"),
)
def every_gpu_bound(view: SnapshotView) -> Iterator[Verdict]:
    gpus = pci_gpus(view)
    listed = listed_gpus(view)
    unbound = [gpu for gpu in gpus if _is_unbound(gpu) and gpu.address not in listed]
    if not unbound:
        if not listed and all(known(gpu.driver) is None for gpu in gpus):
            need(gpus[0].driver, "the bound driver")
        yield Passed("each has a driver")
        return
    kernel = known_kernel(view)
    loaded = None if kernel is None else is_loaded(kernel)
    for gpu in unbound:
        evidence = device_evidence(view, gpu, "driver")
        if loaded and kernel is not None:
            evidence.append(view.evidence("machine.kernel.driver_version"))
            told = [e for e in known(kernel.log) or [] if known(e.pci_address) == gpu.address]
            evidence += [event_evidence(view, event) for event in told[-3:]]
        why = (
            "The nvidia module is loaded and has not taken this GPU: this branch of the driver does"
            " not support it, or could not start it"
            if loaded
            else "No driver is bound to this GPU, since the nvidia module is not loaded"
            if loaded is False
            else "No driver is bound to this GPU"
        )
        yield Finding(
            "fail",
            f"{why}; nothing can use it.",
            subjects=about_device(gpu),
            evidence=evidence,
            remedy=_unbound_remedy(),
        )


def _is_unbound(gpu: PciDevice) -> bool:
    return isinstance(gpu.driver, Unavailable) and gpu.driver.unavailable == "absent"


def _unbound_remedy() -> Remedy:
    return Remedy(
        "Read the driver's own words in the kernel log; install the branch that supports this GPU.",
        ["sudo dmesg | grep -iE 'nvrm|nvidia'", "nvidia-smi -L", "sudo modprobe nvidia"],
    )


@check(
    "PCI-004",
    title="Every device answers on the bus",
    problem="has fallen off the PCI bus",
    about="A GPU that has fallen off the bus does not answer any more: its configuration space reads as"
    " all ones, and the driver logs Xid 79. Jobs on it hang or die, and it may come back for a while"
    " after a reboot. Power, heat, seating or a dying board are the causes. Judged by reading each"
    " device's identity, and by the kernel log since boot where it may be read; one event is enough.",
    sources=("NVSentinel#155", "gpustack/runtime#26", "aws/eks-node-monitoring-agent#245"),
    follows=("PCI-001",),
)
def every_device_answers(view: SnapshotView) -> Iterator[Verdict]:
    devices = [device for device in pci_devices(view) if device.kind in ("gpu", "nvswitch")]
    fallen = _fallen(view)
    if not devices and not fallen:
        raise Skip("no NVIDIA GPU on the PCI bus")
    answering = 0
    for device in devices:
        event = fallen.pop(device.address, None)
        if known(device.answers) is False or event is not None:
            evidence = device_evidence(view, device, "answers", "power_state")
            yield _off_the_bus(about_device(device), evidence + ([event] if event else []))
        elif isinstance(device.answers, Unavailable):
            yield unjudged(_unread(device), about_device(device))
        else:
            answering += 1
    for address, event in fallen.items():
        yield _off_the_bus(about_device_at("gpu", address), [event])
    if answering:
        yield Passed(f"{answering} of {len(devices)} answer")
    try:
        need(facts_of(view.machine.kernel, "the kernel log").log, "the kernel log")
    except CannotJudge as why:
        yield unjudged(why)


def _unread(device: PciDevice) -> CannotJudge:
    try:
        need(device.answers, "the device's answer")
    except CannotJudge as why:
        return why
    return CouldNotRun("the device's answer")


def _fallen(view: SnapshotView) -> dict[str, Evidence]:
    """The last event of each device that fell off the bus, by address ("" where it names none)."""
    kernel = known_kernel(view)
    events = (known(kernel.log) if kernel is not None else None) or []
    return {
        known(event.pci_address) or "": event_evidence(view, event)
        for event in events
        if event.kind == "fallen-off-bus" or (event.kind == "xid" and known(event.xid) == 79)
    }


def _off_the_bus(subjects: list[Subject], evidence: list[Evidence]) -> Finding:
    return Finding(
        "fail",
        "This device has fallen off the PCI bus: jobs on it hang or die, and its results cannot be"
        " trusted until it was looked at.",
        subjects=subjects,
        evidence=evidence,
        remedy=Remedy(
            "Power the machine off and on (a warm reboot may not bring the device back). Where it"
            " happens again: check power cables, seating and temperature, then replace the board.",
            ["sudo nvidia-bug-report.sh  # for the vendor, before the reboot", "sudo poweroff"],
        ),
    )
