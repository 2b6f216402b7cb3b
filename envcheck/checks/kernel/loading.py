"""Checks on whether the kernel takes the driver's module, and whether the module takes the GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...data.kernel import flavour_for
from ...data.system_commands import system_commands
from ...facts.base import Unavailable, known
from ...facts.evidence import Evidence
from ...facts.kernel import Kernel, KernelEvent
from ...facts.missing import CannotJudge, NotKnown
from ...facts.pci import PciDevice
from ...facts.view import SnapshotView, need
from ...findings.commands import TRADE
from ...findings.model import Finding, Passed, Remedy, Verdict, unjudged
from ...findings.shell import word
from ...findings.subjects import Subject, about_device, about_device_at
from ..driver_on_disk import (
    LOG,
    MODPROBE,
    built_for,
    driver_packages,
    install_flavour,
    installed_version,
    module_files,
)
from ..driver_state import REBOOT, branch, then_reboot
from ..module_builds import build_module
from ..nvidia_devices import (
    device_evidence,
    driver_runs,
    event_evidence,
    host_facts,
    is_loaded,
    kernel_facts,
    listed_gpus,
    pci_gpus,
)
from ..registry import check
from ..system_commands import on_system
from .unsupported import is_unsupported, unsupported

CLOUDS = {"azure": "Azure", "google": "Google Cloud", "amazon": "AWS"}
MODULE = re.compile(r"^(nvidia[\w-]*)[: ]|'(nvidia[\w-]*)'")
HARMLESS = "verification failed"  # the kernel takes the module all the same, and is tainted
WRONG_FLAVOUR = {
    "requires use of the NVIDIA open kernel modules": "open",
    "not supported by open nvidia.ko": "proprietary",
}


class ModuleLoadError(NamedTuple):
    """Words in the kernel log by which a module's failure to load is known, and what they mean."""

    pattern: str
    meaning: str  # completes "The kernel module NAME ..."
    remedy: str
    rebuild: bool


LOAD_ERRORS = (
    ModuleLoadError(
        r"version magic|disagrees about version|Invalid module|unknown relocation",
        "was built for another kernel than the running one",
        "Rebuild it for this kernel.",
        True,
    ),
    ModuleLoadError(
        r"Unknown symbol|exports duplicate symbol",
        "does not fit the running kernel, or another module of another version is in its way",
        "Rebuild it; on cloud kernels install linux-modules-extra-$(uname -r), which holds what"
        " nvidia-drm builds on.",
        True,
    ),
    ModuleLoadError(
        r"No NVIDIA (GPU|devices|graphics adapter)|probe routine",
        "found no GPU that it could start, and gave up",
        "Look for the reason in the lines before it.",
        False,
    ),
)


@check(
    "KRN-002",
    title="The kernel accepts the driver's module",
    problem="the kernel refuses the driver's module",
    about="With Secure Boot the kernel refuses a module that is not signed by a key it knows: DKMS says"
    " 'installed' and the module is not loaded. Other refusals have their own words in the kernel log: a"
    " module of another kernel, missing symbols, a GPU that this branch does not support. Judged by the"
    " kernel log since boot, and only where the module in question is not loaded now; a mere 'module"
    " verification failed' is no refusal.",
    sources=(
        "canonical/nvidia-graphics-drivers#61",
        "lcp/mokutil#69",
        "Linux kernel, module loader",
    ),
    follows=("PCI-001", "PCI-002", "KRN-009"),
)
def module_accepted(view: SnapshotView) -> Iterator[Verdict]:
    kernel = kernel_facts(view)
    runs = driver_runs(view, kernel)
    if runs is None:
        need(kernel.modules, "the loaded modules")
    log = known(kernel.log)
    if log is None and runs:
        yield Passed("the module is loaded")
        return
    refused = _refusals(kernel, need(kernel.log, "the kernel log") if log is None else log)
    if runs:
        refused.pop("nvidia", None)
    for module, events in refused.items():
        unknown = [event for event in events if is_unsupported(event)]
        yield from unsupported(view, unknown)
        if not unknown:
            yield _refused(view, kernel, module, events)
    if not refused:
        yield Passed("nothing was refused since boot")


def _refusals(kernel: Kernel, log: list[KernelEvent]) -> dict[str, list[KernelEvent]]:
    """The refusals of modules that are not loaded now, by the module's name."""
    refused: dict[str, list[KernelEvent]] = {}
    for event in log:
        if event.kind not in ("module-rejected", "module-error") and not _of_load(event):
            continue
        named = MODULE.search(event.text)
        module = (named.group(1) or named.group(2)).replace("-", "_") if named else "nvidia"
        if HARMLESS in event.text or is_loaded(kernel, module):
            continue
        if named or event.kind == "nvrm" or _could_load(kernel):
            refused.setdefault(module, []).append(event)
    return refused


def _could_load(kernel: Kernel) -> bool:
    """Whether a refusal that names no module may have been of the driver's: there has to be one."""
    return known(kernel.module_files) is None or known(kernel.release) in built_for(kernel)


def _load_error(event: KernelEvent) -> ModuleLoadError | None:
    if event.kind not in ("module-error", "nvrm"):
        return None
    return next((error for error in LOAD_ERRORS if re.search(error.pattern, event.text)), None)


def _of_load(event: KernelEvent) -> bool:
    return _load_error(event) is not None or is_unsupported(event)


def _refused(view: SnapshotView, kernel: Kernel, module: str, events: list[KernelEvent]) -> Finding:
    evidence = [event_evidence(view, event) for event in events[-3:]]
    consequence = (
        "nothing can use the GPU" if module == "nvidia" else "what builds on it does not work"
    )
    if any(event.kind == "module-rejected" for event in events):
        host = view.machine.host
        if host is not None and host.facts is not None:
            evidence.append(view.evidence("machine.host.secure_boot"))
            if known(host.facts.cloud):
                evidence.append(view.evidence("machine.host.cloud"))
        secure = known(host_facts(view).secure_boot) is not False
        return Finding(
            "fail",
            f"The kernel refuses the module {module}, since "
            + ("Secure Boot is on and " if secure else "")
            + f"no key that it knows has signed it: {consequence}.",
            evidence=evidence,
            remedy=_enrol(view, kernel),
        )
    error = next((found for event in events if (found := _load_error(event))), None)
    meaning = error.meaning if error else "could not be loaded"
    text = error.remedy if error else "Read the kernel log."
    commands = [LOG]
    if error and error.rebuild:
        commands = build_module(view)
        if module != "nvidia":
            commands.append(f"sudo modprobe {word(module)}")
    return Finding(
        "fail",
        f"The kernel module {module} {meaning}: {consequence}.",
        evidence=evidence,
        remedy=Remedy(text, commands),
    )


def _enrol(view: SnapshotView, kernel: Kernel) -> Remedy:
    host = host_facts(view)
    if known(host.secure_boot) is False:
        return Remedy(
            "Secure Boot is off: the kernel was told to take signed modules alone, by module.sig_enforce=1 or"
            f" lockdown= on its command line. Take that away, and reboot. {TRADE}the kernel then loads"
            " modules that nobody signed.",
            [
                "cat /proc/cmdline /sys/kernel/security/lockdown",
                *_without_enforcement(view),
                REBOOT,
            ],
        )
    cloud = known(host.cloud) or ""
    signed = _signed_modules(view, kernel)
    if cloud:
        return _in_cloud(view, cloud, signed)
    akmods = any(text.startswith("akmod") for text in driver_packages(kernel))
    key = system_commands("mok-key", ["akmods"]) if akmods else on_system(view, "mok-key")
    console = " (on the virtual machine's own console)" if known(host.hypervisor) else ""
    return Remedy(
        "Enrol the key that the module is signed with (the machine owner key), so that Secure Boot lets it"
        " in: choose a password, reboot,"
        f" and take 'Enroll MOK' on the blue screen that comes up once{console}."
        + (" Or install modules that the distribution has signed." if signed else ""),
        ["mokutil --sb-state", *key, REBOOT, MODPROBE, *signed],
    )


def _without_enforcement(view: SnapshotView) -> list[str]:
    """What opens, or changes, the kernel's command line."""
    commands = on_system(view, "boot-options", options="module.sig_enforce=1 lockdown=integrity")
    return [command.replace("--args=", "--remove-args=") for command in commands]


_NO_SECURE_BOOT = (
    f"{TRADE}without Secure Boot the machine starts whatever stands on its disk, signed or not."
)


def _in_cloud(view: SnapshotView, cloud: str, signed: list[str]) -> Remedy:
    """A cloud's machine shows nobody the screen on which a key is enrolled."""
    off = system_commands("secure-boot-off", [cloud])
    how = (
        f"Switch Secure Boot off in the machine's settings. {_NO_SECURE_BOOT}"
        if off
        else "Start the machine from an image, or with settings, without Secure Boot."
    )
    return Remedy(
        f"This is a machine of {CLOUDS.get(cloud, cloud)}, without a console for the screen on which a key is"
        " enrolled. "
        + (
            "Install modules that the distribution has signed, instead of DKMS's."
            if signed
            else how
        ),
        ["mokutil --sb-state", *(signed or off)],
    )


def _signed_modules(view: SnapshotView, kernel: Kernel) -> list[str]:
    number = branch(known(kernel.driver_version) or installed_version(kernel))
    if not number:
        return []
    flavours = {known(file.flavour) for file in module_files(kernel)}
    return on_system(
        view, "signed-modules", branch=number + ("-open" if "open" in flavours else "")
    )


@check(
    "KRN-009",
    title="The module's flavour fits the GPUs",
    problem="needs another flavour of kernel module",
    about="NVIDIA's kernel modules come in two flavours. Blackwell and newer GPUs, and Grace Hopper, work"
    " with the open one only; GPUs before Turing with the proprietary one only; the others with both."
    " With the wrong one the module loads, cannot start the GPU, and nvidia-smi finds no devices. Judged"
    " by the device's PCI id against a table, and by the driver's own words in the kernel log; a GPU that"
    " the driver lists is healthy.",
    sources=(
        "NVIDIA driver installation guide, Kernel Modules",
        "NVIDIA developer blog, transition to open-source GPU kernel modules",
        "NVIDIA/open-gpu-kernel-modules#19",
    ),
    follows=("PCI-001", "PCI-002"),
)
def flavour_fits(view: SnapshotView) -> Iterator[Verdict]:
    kernel = kernel_facts(view)
    told = _told_flavours(view, kernel)
    try:
        gpus = pci_gpus(view)
    except CannotJudge:
        if not told:
            raise
        gpus = []
    flavour, path = _flavour(kernel)
    if flavour is None and not told:
        need(kernel.driver_flavour, "the module's flavour")
    listed = listed_gpus(view)
    unknown = False
    for gpu in gpus:
        words = told.pop(gpu.address, None)
        if gpu.address in listed:
            continue
        if words is not None and words[0] != flavour:
            yield _wrong(view, kernel, about_device(gpu), words[0], [words[1]])
        elif flavour is not None and flavour_for(gpu.device_id) is None:
            unknown = True
            why = NotKnown(f"which module drives device id {gpu.device_id}")
            yield unjudged(why, about_device(gpu))
        elif flavour is not None:
            yield from _by_table(view, kernel, gpu, flavour, path)
    for address, (needed, line) in told.items():
        if needed != flavour:
            yield _wrong(view, kernel, about_device_at("gpu", address), needed, [line])
    if flavour and not unknown:
        yield Passed(f"the {flavour} module")


def _by_table(
    view: SnapshotView, kernel: Kernel, gpu: PciDevice, flavour: str, path: str
) -> Iterator[Verdict]:
    row = flavour_for(gpu.device_id)
    if row is not None and row.flavour not in ("either", flavour):
        evidence = [*device_evidence(view, gpu, "device_id"), view.evidence(path, flavour)]
        yield _wrong(view, kernel, about_device(gpu, row.gpus), row.flavour, evidence)


def _flavour(kernel: Kernel) -> tuple[str | None, str]:
    """The flavour of the loaded module, else of the one on disk for this kernel; and the fact's path."""
    if not isinstance(kernel.driver_flavour, Unavailable):
        return kernel.driver_flavour, "machine.kernel.driver_flavour"
    for file in module_files(kernel):
        if file.kernel == known(kernel.release) and not isinstance(file.flavour, Unavailable):
            return file.flavour, "machine.kernel.module_files"
    return None, "machine.kernel.driver_flavour"


def _told_flavours(view: SnapshotView, kernel: Kernel) -> dict[str, tuple[str, Evidence]]:
    """{address: (flavour that the driver asks for, its words)} from the kernel log."""
    told = {}
    for event in known(kernel.log) or []:
        for words, flavour in WRONG_FLAVOUR.items():
            if words in event.text and "vGPU" not in event.text:
                told[known(event.pci_address) or ""] = flavour, event_evidence(view, event)
    return told


def _wrong(
    view: SnapshotView,
    kernel: Kernel,
    subjects: list[Subject],
    needed: str,
    evidence: list[Evidence],
) -> Finding:
    other = "proprietary" if needed == "open" else "open"
    return Finding(
        "fail",
        f"This GPU works with NVIDIA's {needed} kernel module only, and the {other} one is installed:"
        " the driver cannot start it, and nvidia-smi does not list it.",
        subjects=subjects,
        evidence=evidence,
        remedy=Remedy(
            f"Install the {needed} flavour in the other one's place, and reboot.",
            then_reboot(install_flavour(view, kernel, needed)),
        ),
        headline=f"needs NVIDIA's {needed} kernel module",
    )
