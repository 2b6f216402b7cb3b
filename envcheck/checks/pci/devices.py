"""Checks on the PCI bus: is there a GPU, which driver holds it, does it answer."""

from __future__ import annotations

from ...facts.kernel import Kernel
from ...facts.pci import PciDevice
from ...findings.subjects import about_device, about_device_at
from .. import config_lines as config
from .. import driver_on_disk as disk
from .. import nvidia_devices as devices
from ..declared import declared_causes, declared_rows
from ..driver_state import REBOOT, on_wsl, then_reboot
from ..kernel.events import found_line
from ..reading import (
    CannotJudge,
    Skip,
    SnapshotView,
    Unavailable,
    facts_of,
    facts_or,
    is_absent,
    known,
    need,
)
from ..system_commands import on_system
from ..verdicts import (
    Evidence,
    Finding,
    Params,
    Passed,
    Remedy,
    Unjudged,
    Verdicts,
    check,
    unjudged,
    word,
)
from . import wsl

CAUSE = declared_causes(__name__)

# Drivers of the kernel's own that take an NVIDIA GPU before NVIDIA's driver can.
RIVALS = ("nouveau", "nova_core")

NO_GPU = CAUSE["no-gpu"]


@check("PCI-001", causes=wsl.CAUSES)
def gpu_present(view: SnapshotView) -> Verdicts:
    if on_wsl(view):
        yield from wsl.judge(view)
        return
    listed = devices.listed_gpus(view)
    found = facts_of(view.machine.pci, "PCI devices").devices
    gpus = [device for device in known(found) or [] if device.kind == "gpu"]
    what = "No NVIDIA GPU is on this machine's PCI bus"
    if isinstance(found, Unavailable):
        what = "This machine has no PCI bus that could carry an NVIDIA GPU"
        if found.unavailable != "absent" and not listed:
            need(found, "PCI devices")
    if gpus:
        names = [listed.get(gpu.address) or known(gpu.name) or gpu.device_id for gpu in gpus]
        yield Passed(devices.summary(names))
    elif listed:
        yield Passed(f"{devices.summary(list(listed.values()))}, listed by the driver")
    elif devices.is_loaded(facts_or(view.machine.kernel, Kernel), "nvgpu"):
        raise Skip("the GPU of this system on a chip (Tegra) is not on PCI")
    else:
        evidence = [view.evidence("machine.pci.devices")]
        if rules := config.removing_gpus(view):
            evidence += config.shown(view, "udev_rules", rules)
            out = config.keeping_out(view, "nvidia")
            advice = config.undo(view, [*rules, *out])
            yield CAUSE["gpu-removed-by-udev"].found(
                evidence=evidence, advice=advice, where=config.where(rules)
            )
        else:
            yield NO_GPU.found(evidence=evidence, what=what)


PASSED_THROUGH = CAUSE["held-for-guest"]


@check("PCI-002")
def no_other_driver(view: SnapshotView) -> Verdicts:
    gpus = devices.pci_gpus(view)
    held = [gpu for gpu in gpus if devices.held_for_guests(gpu)]
    for gpu in gpus:
        name, subject = devices.driver_name(gpu), about_device(gpu)
        evidence = devices.device_evidence(view, gpu, "driver")
        if gpu in held:
            cause = CAUSE["all-held-for-guests"] if len(held) == len(gpus) else PASSED_THROUGH
            advice = _give_back(view, gpu)
            path = _meant_for_guest(view, gpu)
            if path:
                text = f"{path}: {gpu.device_id}"
                evidence.append(view.evidence("machine.kernel.module_options", text))
            where = f" (by the options of vfio-pci in {path})" if path else ""
            params: Params = {"driver": known(gpu.driver), "where": where}
            yield cause.found(subject, evidence, advice=advice, **params)
        elif (path := _meant_for_guest(view, gpu)) and name in devices.NVIDIA_DRIVERS:
            evidence.append(
                view.evidence("machine.kernel.module_options", f"{path}: {gpu.device_id}")
            )
            commands = [_SOFTDEP, *on_system(view, "initramfs"), REBOOT]
            params = {"driver": known(gpu.driver), "path": path}
            yield CAUSE["meant-for-guest"].found(subject, evidence, commands=commands, **params)
        elif name in RIVALS and _refused(facts_or(view.machine.kernel, Kernel)):
            why = f"the kernel refused NVIDIA's module (KRN-002), and {name} took the GPU"
            yield Unjudged("skipped", why, subject)
        elif name in RIVALS:
            yield _rival(view, gpu, name, evidence)
    bound = sum(devices.driver_name(gpu) in devices.NVIDIA_DRIVERS for gpu in gpus)
    yield Passed(f"{bound} of {len(gpus)} bound to nvidia")


def _refused(kernel: Kernel) -> bool:
    """Whether NVIDIA's module is there, and was not let in: the distributions then fall back to nouveau."""
    rejected = [one.text for one in known(kernel.log) or [] if one.kind == "module-rejected"]
    there = known(kernel.release) in disk.built_for(kernel)
    return there and any("verification failed" not in text for text in rejected)


_SOFTDEP = (
    "printf 'softdep nvidia pre: vfio-pci\\nsoftdep nouveau pre: vfio-pci\\n'"
    " | sudo tee /etc/modprobe.d/vfio-first.conf"
)


def _meant_for_guest(view: SnapshotView, gpu: PciDevice) -> str:
    """The file whose options have vfio-pci take GPUs of this device id; "" where it is not."""
    options = known(facts_or(view.machine.kernel, Kernel).module_options) or []
    ids = {one.path: one.value for one in options if (one.module, one.name) == ("vfio_pci", "ids")}
    found = (path for path, value in ids.items() if gpu.device_id in value.lower().split(","))
    return next(found, "")


def _give_back(view: SnapshotView, gpu: PciDevice) -> Remedy | None:
    """How the GPU comes back to NVIDIA's driver: at once where only this device's override holds it."""
    place, where = f"/sys/bus/pci/devices/{gpu.address}", _meant_for_guest(view, gpu)
    if known(gpu.driver_override) and not where:
        return Remedy(
            f"A driver_override on this device keeps it for {known(gpu.driver_override)}. If the GPU is meant"
            " for this machine and no virtual machine has it: clear the override, unbind the GPU, and let"
            " NVIDIA's driver bind it. Where driverctl set it, it comes back at the next boot: driverctl"
            " unset-override clears it for good.",
            [
                f"fuser -v /dev/vfio/{known(gpu.iommu_group) or '*'}",
                f"echo | sudo tee {place}/driver_override",
                f"echo {gpu.address} | sudo tee {place}/driver/unbind",
                f"echo {gpu.address} | sudo tee /sys/bus/pci/drivers_probe",
            ],
        )
    if sum(other.device_id == gpu.device_id for other in devices.pci_gpus(view)) > 1:
        return Remedy(
            f"{PASSED_THROUGH.remedy} vfio-pci takes every device of an id, and this machine has several GPUs"
            f" of {gpu.device_id}: a guest's own is then bound by its address.",
            [
                "grep -rn vfio /etc/modprobe.d /etc/initramfs-tools/modules /proc/cmdline",
                *on_system(view, "initramfs"),
                "sudo driverctl set-override ADDRESS vfio-pci  # of the guest's GPU",
                REBOOT,
            ],
        )
    see = ["grep -rn vfio /etc/modprobe.d /proc/cmdline"]
    if where == config.CMDLINE:
        see = config.off_command_line(view, f"vfio-pci.ids={gpu.device_id}")
    elif where:
        see = [f"sudo sed -i.bak -E {word(f's/{gpu.device_id},?//I')} {word(where)}"]
    return Remedy(PASSED_THROUGH.remedy, [*see, *on_system(view, "initramfs"), REBOOT])


def _rival(view: SnapshotView, gpu: PciDevice, driver: str, evidence: list[Evidence]) -> Finding:
    already, commands = config.keeping_out(view, driver), on_system(view, "initramfs")
    if already:
        evidence += config.shown(view, "kept_out", already)
    else:
        more = "options nouveau modeset=0\\n" if driver == "nouveau" else ""
        file = f"/etc/modprobe.d/blacklist-{driver}.conf"
        commands.insert(0, f"printf 'blacklist {driver}\\n{more}' | sudo tee {file}")
    early = (
        f" (it is already, in {config.where(already)}: the initial RAM disk was made before that)"
    )
    params: Params = {"driver": driver, "already": early if already else ""}
    return CAUSE["held-by-kernel-driver"].found(
        about_device(gpu), evidence, commands=then_reboot(commands), **params
    )


@check("PCI-003")
def every_gpu_bound(view: SnapshotView) -> Verdicts:
    gpus, listed = devices.pci_gpus(view), devices.listed_gpus(view)
    unbound = [gpu for gpu in gpus if is_absent(gpu.driver) and gpu.address not in listed]
    if not unbound:
        if not listed and all(known(gpu.driver) is None for gpu in gpus):
            need(gpus[0].driver, "the bound driver")
        yield Passed("each has a driver")
        return
    kernel = facts_or(view.machine.kernel, Kernel)
    loaded = devices.is_loaded(kernel)
    why = "No driver is bound to this GPU"
    if loaded:
        why = "The nvidia module is loaded and does not support this GPU, or could not start it"
    elif loaded is False:
        why += ", since the nvidia module is not loaded"
    for gpu in unbound:
        evidence = devices.device_evidence(view, gpu, "driver")
        if loaded:
            evidence.append(view.evidence("machine.kernel.driver_version"))
            log = [e for e in known(kernel.log) or [] if known(e.pci_address) == gpu.address]
            evidence += [devices.event_evidence(view, event) for event in log[-3:]]
        yield CAUSE["no-driver-bound"].found(about_device(gpu), evidence, why=why)


def _does_not_wake(view: SnapshotView, device: PciDevice) -> list[Finding]:
    events = known(facts_or(view.machine.kernel, Kernel).log) or []
    own = [event for event in events if known(event.pci_address) == device.address]
    fitting = ((row, [one for one in own if row.fits(one.kind, one.text)]) for row in _ASLEEP)
    found = (found_line(view, row, device.address, lines) for row, lines in fitting if lines)
    return next(found, [])


FALLEN = CAUSE["off-the-bus"]


_OF_BOARDS = 8  # GPUs on a baseboard with NVSwitches
_ASLEEP = declared_rows(__name__)


@check("PCI-004")
def every_device_answers(view: SnapshotView) -> Verdicts:
    found = [device for device in devices.pci_devices(view) if device.kind in ("gpu", "nvswitch")]
    # The last event of each device that fell off the bus, by address ("" if it names none).
    fallen = {
        known(event.pci_address) or "": devices.event_evidence(view, event)
        for event in known(facts_or(view.machine.kernel, Kernel).log) or []
        if event.kind == "fallen-off-bus" or (event.kind == "xid" and known(event.xid) == 79)
    }
    if not found and not fallen:
        raise Skip("no NVIDIA GPU on the PCI bus")
    answering = 0
    for device in found:
        event = fallen.pop(device.address, None)
        silent = known(device.answers) is False or event is not None
        if silent and (asleep := _does_not_wake(view, device)):
            yield from asleep
            continue
        if silent:
            evidence = devices.device_evidence(view, device, "answers", "power_state")
            yield FALLEN.found(about_device(device), evidence + ([event] if event else []))
            continue
        try:
            need(device.answers, "the device's answer")
            answering += 1
        except CannotJudge as why:
            yield unjudged(why, about_device(device))
    for address, event in fallen.items():
        yield FALLEN.found(about_device_at("gpu", address), [event])
    count = sum(device.kind == "gpu" for device in found)
    missing = -count % _OF_BOARDS
    if count < len(found) and missing and is_absent(devices.host_facts(view).hypervisor):
        params: Params = {"count": count, "whole": count + missing, "missing": missing}
        yield CAUSE["board-not-complete"].found(
            evidence=[view.evidence("machine.pci.devices", f"{count} GPUs")], **params
        )
    if answering:
        yield Passed(f"{answering} of {len(found)} answer")
    try:
        need(facts_of(view.machine.kernel, "the kernel log").log, "the kernel log")
    except CannotJudge as why:
        yield unjudged(why)
