"""Checks on whether the kernel takes the driver's module, and whether its flavour fits the GPUs."""

from __future__ import annotations

import re

from ...data.kernel import flavour_for
from ...data.system_commands import system_commands
from ...findings.subjects import Subject, about_device, about_device_at
from .. import driver_on_disk as disk
from .. import nvidia_devices as devices
from ..config_lines import off_command_line
from ..declared import declared_causes, declared_rows
from ..driver_state import REBOOT, branch, then_reboot
from ..reading import CannotJudge, Kernel, KernelEvent, NotKnown, SnapshotView, known, need
from ..system_commands import on_system
from ..verdicts import (
    TRADE,
    DeclaredRow,
    Evidence,
    Finding,
    Passed,
    Remedy,
    Verdicts,
    check,
    fail,
    unjudged,
    word,
)
from .events import line_commands

CAUSE = declared_causes(__name__)

_MODULE = re.compile(r"^(nvidia[\w-]*)[: ]|'(nvidia[\w-]*)'")
_HARMLESS = "verification failed"  # the kernel takes the module all the same, and is tainted
_WRONG_FLAVOUR = {
    "requires use of the NVIDIA open kernel modules": "open",
    "not supported by open nvidia.ko": "proprietary",
}


_LINES = declared_rows(__name__)


@check("KRN-002")
def module_accepted(view: SnapshotView) -> Verdicts:
    kernel = devices.kernel_facts(view)
    runs = devices.driver_runs(view, kernel)
    if runs is None:
        need(kernel.modules, "the loaded modules")
    if runs and known(kernel.log) is None:
        yield Passed("the module is loaded")
        return
    refused = _refusals(kernel, need(kernel.log, "the kernel log"))
    if runs:
        refused.pop("nvidia", None)
    for module, events in refused.items():
        yield _refused(view, kernel, module, events)
    if not refused:
        yield Passed("nothing was refused since boot")


def _refusals(kernel: Kernel, log: list[KernelEvent]) -> dict[str, list[KernelEvent]]:
    """The refusals of modules that are not loaded now, by the module's name."""
    # A line that names no module may be about the driver's only if there is one.
    could_load = known(kernel.module_files) is None or known(kernel.release) in disk.built_for(
        kernel
    )
    refused: dict[str, list[KernelEvent]] = {}
    for event in log:
        if event.kind != "module-rejected" and not _rows(event):
            continue
        named = _MODULE.search(event.text)
        module = (named.group(1) or named.group(2)).replace("-", "_") if named else "nvidia"
        if _HARMLESS in event.text or devices.is_loaded(kernel, module):
            continue
        if named or event.kind == "nvrm" or could_load:
            refused.setdefault(module, []).append(event)
    return refused


def _rows(event: KernelEvent) -> list[DeclaredRow]:
    return [row for row in _LINES if row.fits(event.kind, event.text)]


def _refused(view: SnapshotView, kernel: Kernel, module: str, events: list[KernelEvent]) -> Finding:
    evidence = [devices.event_evidence(view, event) for event in events[-3:]]
    what = "nothing can use the GPU" if module == "nvidia" else "what builds on it does not work"
    if any(event.kind == "module-rejected" for event in events):
        evidence += [view.evidence("machine.host.secure_boot")] if view.machine.host else []
        enforced = known(devices.host_facts(view).secure_boot) is False
        cause = CAUSE["signature-enforced"] if enforced else CAUSE["secure-boot"]
        advice = _allow_unsigned(view) if enforced else _enrol(view, kernel)
        return cause.found(evidence=evidence, advice=advice, module=module, consequence=what)
    row = min((row for event in events for row in _rows(event)), key=_LINES.index)
    commands = line_commands(view, row, None)
    if "@build-module" in row.steps and module != "nvidia":
        commands.append(f"sudo modprobe {word(module)}")
    return row.cause.found(evidence=evidence, commands=commands, module=module, consequence=what)


def _allow_unsigned(view: SnapshotView) -> Remedy:
    without = off_command_line(view, "module.sig_enforce=1 lockdown=integrity")[1:]
    return Remedy(
        "Secure Boot is off: the kernel was configured to take signed modules alone, by module.sig_enforce=1"
        f" or lockdown= on its command line. Take that away, and reboot. {TRADE}the kernel then loads"
        " unsigned modules.",
        ["cat /proc/cmdline /sys/kernel/security/lockdown", *without, REBOOT],
    )


def _enrol(view: SnapshotView, kernel: Kernel) -> Remedy:
    number = branch(known(kernel.driver_version) or disk.installed_version(kernel))
    if number and "open" in {known(file.flavour) for file in disk.module_files(kernel)}:
        number += "-open"
    signed = on_system(view, "signed-modules", branch=number) if number else []
    cloud = known(devices.host_facts(view).cloud)
    if cloud:  # which shows no screen on which a key is enrolled
        off = [] if signed else system_commands("secure-boot-off", [cloud])
        return Remedy(
            f"{cloud.title()} has no console for the screen on which a key is enrolled: install modules that"
            " the distribution has signed, or start the machine without Secure Boot."
            f" {TRADE}without it the machine starts whatever stands on its disk, signed or not.",
            ["mokutil --sb-state", *signed, *off],
        )
    akmods = disk.by_akmods(kernel)
    key = system_commands("mok-key", ["akmods"]) if akmods else on_system(view, "mok-key")
    return Remedy(
        "Enrol the key that the module is signed with (the machine owner key), so that Secure Boot lets it"
        " in: choose a password, reboot, and take 'Enroll MOK' on the console's screen. Or install modules"
        " that the distribution has signed.",
        ["mokutil --sb-state", *key, REBOOT, disk.MODPROBE, *signed],
    )


NEEDS = {
    needed: fail(
        f"needs-{needed}-module",
        f"needs NVIDIA's {needed} kernel module",
        f"This GPU works with NVIDIA's {needed} kernel module only, and the {other} one is installed: the"
        " driver cannot start it, and nvidia-smi does not list it.",
        f"Install the {needed} flavour instead of the other one, and reboot.",
    )
    for needed, other in (("open", "proprietary"), ("proprietary", "open"))
}


@check("KRN-009", causes=NEEDS.values())
def flavour_fits(view: SnapshotView) -> Verdicts:
    kernel = devices.kernel_facts(view)
    logged = {
        known(event.pci_address) or "": (flavour, devices.event_evidence(view, event))
        for event in known(kernel.log) or []
        for words, flavour in _WRONG_FLAVOUR.items()
        if words in event.text and "vGPU" not in event.text
    }
    try:
        gpus = devices.pci_gpus(view)
    except CannotJudge:
        if not logged:
            raise
        gpus = []
    flavour, path = _flavour(kernel)
    number = branch(known(kernel.driver_version) or disk.installed_version(kernel))
    if flavour is None and not logged:
        need(kernel.driver_flavour, "the module's flavour")
    unknown = False
    for gpu in gpus:
        needed, line = logged.pop(gpu.address, (None, None))
        row = flavour_for(gpu.device_id)
        other = bool(row and row.lacks(number)) and devices.driver_name(gpu) is None
        if gpu.address in devices.listed_gpus(view) or other:
            continue  # KRN-013 has those that no flavour of this branch drives
        if needed and line and needed != flavour:
            yield _wrong(view, kernel, about_device(gpu), needed, [line])
        elif flavour is not None and row is None:
            unknown = True
            why = NotKnown(f"which module drives device id {gpu.device_id}")
            yield unjudged(why, about_device(gpu))
        elif flavour is not None and row is not None and row.flavour not in ("either", flavour):
            evidence = devices.device_evidence(view, gpu, "device_id")
            evidence.append(view.evidence(path, flavour))
            yield _wrong(view, kernel, about_device(gpu, row.gpus), row.flavour, evidence)
    for address, (needed, line) in logged.items():
        if needed != flavour:
            yield _wrong(view, kernel, about_device_at("gpu", address), needed, [line])
    if flavour and not unknown:
        yield Passed(f"the {flavour} module")


def _flavour(kernel: Kernel) -> tuple[str | None, str]:
    """The flavour of the loaded module, else of the one on disk for this kernel; and the fact's path."""
    if loaded := known(kernel.driver_flavour):
        return loaded, "machine.kernel.driver_flavour"
    files = [f for f in disk.module_files(kernel) if f.kernel == known(kernel.release)]
    found = next(filter(None, (known(file.flavour) for file in files)), None)
    return found, "machine.kernel.module_files" if found else "machine.kernel.driver_flavour"


def _wrong(
    view: SnapshotView, kernel: Kernel, on: list[Subject], needed: str, evidence: list[Evidence]
) -> Finding:
    commands = then_reboot(disk.install_flavour(view, kernel, needed))
    return NEEDS[needed].found(on, evidence, commands=commands)
