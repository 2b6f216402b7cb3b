"""Checks on whether the kernel takes the driver's module, and whether the module takes the GPUs."""

from __future__ import annotations

import re

from ...data.kernel import flavour_for
from ...data.system_commands import system_commands
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
from ..reading import (
    CannotJudge,
    Kernel,
    KernelEvent,
    NotKnown,
    SnapshotView,
    Unavailable,
    known,
    need,
)
from ..system_commands import on_system
from ..verdicts import (
    TRADE,
    Cause,
    Evidence,
    Finding,
    Passed,
    Remedy,
    Subject,
    Verdicts,
    about_device,
    about_device_at,
    check,
    fail,
    unjudged,
    word,
)
from .unsupported import CAUSES as UNSUPPORTED
from .unsupported import is_unsupported, unsupported

_CLOUDS = {"azure": "Azure", "google": "Google Cloud", "amazon": "AWS"}
_MODULE = re.compile(r"^(nvidia[\w-]*)[: ]|'(nvidia[\w-]*)'")
_HARMLESS = "verification failed"  # the kernel takes the module all the same, and is tainted
_WRONG_FLAVOUR = {
    "requires use of the NVIDIA open kernel modules": "open",
    "not supported by open nvidia.ko": "proprietary",
}


def _refusal(key: str, meaning: str, remedy: str = "") -> Cause:
    sentence = f"{meaning}: {{consequence}}."
    headline = "the kernel refuses the driver's module"
    return fail(key, headline, sentence, remedy, LOG)


OTHER_KERNEL = _refusal(
    "module-of-other-kernel",
    "The kernel module {module} was built for another kernel than the running one",
    "Rebuild it for this kernel.",
)
SYMBOLS = _refusal(
    "module-symbols",
    "The kernel module {module} does not fit the running kernel, or another module of another version is"
    " in its way",
    "Rebuild it; on cloud kernels install linux-modules-extra-$(uname -r), which holds what nvidia-drm"
    " builds on.",
)
FOUND_NO_GPU = _refusal(
    "module-found-no-gpu",
    "The kernel module {module} found no GPU that it could start, and gave up",
    "Look for the reason in the lines before it.",
)
NOT_LOADED = _refusal(
    "module-load-error", "The kernel module {module} could not be loaded", "Read the kernel log."
)
_REFUSED = "The kernel refuses the module {module}, since "
_UNSIGNED = "no key that it knows has signed it"
SECURE_BOOT = _refusal("secure-boot", f"{_REFUSED}Secure Boot is on and {_UNSIGNED}")
ENFORCED = _refusal("signature-enforced", _REFUSED + _UNSIGNED)
# Patterns in the kernel log by which a module's failure to load is known.
_LOAD_ERRORS = {
    r"version magic|disagrees about version|Invalid module|unknown relocation": OTHER_KERNEL,
    r"Unknown symbol|exports duplicate symbol": SYMBOLS,
    r"No NVIDIA (GPU|devices|graphics adapter)|probe routine": FOUND_NO_GPU,
}


@check(
    "KRN-002",
    title="The kernel accepts the driver's module",
    causes=[
        *(OTHER_KERNEL, SYMBOLS, FOUND_NO_GPU, NOT_LOADED, SECURE_BOOT, ENFORCED),
        *UNSUPPORTED,
    ],
    about="With Secure Boot the kernel refuses a module that is not signed by a key it knows: DKMS says"
    " 'installed' and the module is not loaded. Other refusals have their own words in the kernel log: a"
    " module of another kernel, missing symbols, a GPU that this branch does not support.",
    sources=["canonical/nvidia-graphics-drivers#61; lcp/mokutil#69; Linux kernel, module loader"],
    follows=("PCI-001", "PCI-002", "KRN-009"),
)
def module_accepted(view: SnapshotView) -> Verdicts:
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
        if unknown:
            yield from unsupported(view, unknown)
        else:
            yield _refused(view, kernel, module, events)
    if not refused:
        yield Passed("nothing was refused since boot")


def _refusals(kernel: Kernel, log: list[KernelEvent]) -> dict[str, list[KernelEvent]]:
    """The refusals of modules that are not loaded now, by the module's name."""
    # A line that names no module may be about the driver's only if there is one.
    could_load = known(kernel.module_files) is None or known(kernel.release) in built_for(kernel)
    refused: dict[str, list[KernelEvent]] = {}
    for event in log:
        of_load = _load_error(event) is not None or is_unsupported(event)
        if event.kind not in ("module-rejected", "module-error") and not of_load:
            continue
        named = _MODULE.search(event.text)
        module = (named.group(1) or named.group(2)).replace("-", "_") if named else "nvidia"
        if _HARMLESS in event.text or is_loaded(kernel, module):
            continue
        if named or event.kind == "nvrm" or could_load:
            refused.setdefault(module, []).append(event)
    return refused


def _load_error(event: KernelEvent) -> Cause | None:
    if event.kind not in ("module-error", "nvrm"):
        return None
    found = (cause for words, cause in _LOAD_ERRORS.items() if re.search(words, event.text))
    return next(found, None)


def _refused(view: SnapshotView, kernel: Kernel, module: str, events: list[KernelEvent]) -> Finding:
    evidence = [event_evidence(view, event) for event in events[-3:]]
    own = module == "nvidia"
    consequence = "nothing can use the GPU" if own else "what builds on it does not work"
    if any(event.kind == "module-rejected" for event in events):
        host = host_facts(view)
        if view.machine.host is not None and view.machine.host.facts is not None:
            evidence.append(view.evidence("machine.host.secure_boot"))
        if known(host.cloud):
            evidence.append(view.evidence("machine.host.cloud"))
        enforced = known(host.secure_boot) is False
        return (ENFORCED if enforced else SECURE_BOOT).found(
            evidence=evidence,
            advice=_allow_unsigned(view) if enforced else _enrol(view, kernel),
            module=module,
            consequence=consequence,
        )
    cause = next(filter(None, map(_load_error, events)), NOT_LOADED)
    commands = None
    if cause in (OTHER_KERNEL, SYMBOLS):
        commands = build_module(view) + ([] if own else [f"sudo modprobe {word(module)}"])
    return cause.found(evidence=evidence, commands=commands, module=module, consequence=consequence)


def _allow_unsigned(view: SnapshotView) -> Remedy:
    options = on_system(view, "boot-options", options="module.sig_enforce=1 lockdown=integrity")
    without = [command.replace("--args=", "--remove-args=") for command in options]
    return Remedy(
        "Secure Boot is off: the kernel was told to take signed modules alone, by module.sig_enforce=1 or"
        f" lockdown= on its command line. Take that away, and reboot. {TRADE}the kernel then loads"
        " modules that nobody signed.",
        ["cat /proc/cmdline /sys/kernel/security/lockdown", *without, REBOOT],
    )


def _enrol(view: SnapshotView, kernel: Kernel) -> Remedy:
    host = host_facts(view)
    signed = _signed_modules(view, kernel)
    if cloud := known(host.cloud):
        return _in_cloud(cloud, signed)
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


def _in_cloud(cloud: str, signed: list[str]) -> Remedy:
    """Clouds do not show the screen on which a key is enrolled."""
    off = system_commands("secure-boot-off", [cloud])
    if signed:
        how = "Install modules that the distribution has signed, instead of DKMS's."
    elif off:
        how = (
            f"Switch Secure Boot off in the machine's settings. {TRADE}without Secure Boot the machine starts"
            " whatever stands on its disk, signed or not."
        )
    else:
        how = "Start the machine from an image, or with settings, without Secure Boot."
    return Remedy(
        f"This is a machine of {_CLOUDS.get(cloud, cloud)}, without a console for the screen on which a key"
        f" is enrolled. {how}",
        ["mokutil --sb-state", *(signed or off)],
    )


def _signed_modules(view: SnapshotView, kernel: Kernel) -> list[str]:
    number = branch(known(kernel.driver_version) or installed_version(kernel))
    if number and "open" in {known(file.flavour) for file in module_files(kernel)}:
        number += "-open"
    return on_system(view, "signed-modules", branch=number) if number else []


NEEDS = {
    needed: fail(
        f"needs-{needed}-module",
        f"needs NVIDIA's {needed} kernel module",
        f"This GPU works with NVIDIA's {needed} kernel module only, and the {other} one is"
        " installed: the driver cannot start it, and nvidia-smi does not list it.",
        f"Install the {needed} flavour instead of the other one, and reboot.",
    )
    for needed, other in (("open", "proprietary"), ("proprietary", "open"))
}


@check(
    "KRN-009",
    title="The module's flavour fits the GPUs",
    causes=NEEDS.values(),
    about="NVIDIA's kernel modules come in two flavours. Blackwell and newer GPUs, and Grace Hopper, work"
    " with the open one only; GPUs before Turing with the proprietary one only; the others with both.",
    sources=["NVIDIA driver installation guide, Kernel Modules"],
    follows=("PCI-001", "PCI-002"),
)
def flavour_fits(view: SnapshotView) -> Verdicts:
    kernel = kernel_facts(view)
    logged = _logged_flavours(view, kernel)
    try:
        gpus = pci_gpus(view)
    except CannotJudge:
        if not logged:
            raise
        gpus = []
    flavour, path = _flavour(kernel)
    if flavour is None and not logged:
        need(kernel.driver_flavour, "the module's flavour")
    unknown = False
    listed = listed_gpus(view)
    for gpu in gpus:
        needed, line = logged.pop(gpu.address, (None, None))
        row = flavour_for(gpu.device_id)
        if gpu.address in listed:
            continue
        if needed and line and needed != flavour:
            yield _wrong(view, kernel, about_device(gpu), needed, [line])
        elif flavour is not None and row is None:
            unknown = True
            why = NotKnown(f"which module drives device id {gpu.device_id}")
            yield unjudged(why, about_device(gpu))
        elif flavour is not None and row is not None and row.flavour not in ("either", flavour):
            evidence = [*device_evidence(view, gpu, "device_id"), view.evidence(path, flavour)]
            yield _wrong(view, kernel, about_device(gpu, row.gpus), row.flavour, evidence)
    for address, (needed, line) in logged.items():
        if needed != flavour:
            yield _wrong(view, kernel, about_device_at("gpu", address), needed, [line])
    if flavour and not unknown:
        yield Passed(f"the {flavour} module")


def _flavour(kernel: Kernel) -> tuple[str | None, str]:
    """The flavour of the loaded module, else of the one on disk for this kernel; and the fact's path."""
    if not isinstance(kernel.driver_flavour, Unavailable):
        return kernel.driver_flavour, "machine.kernel.driver_flavour"
    for file in module_files(kernel):
        if file.kernel == known(kernel.release) and not isinstance(file.flavour, Unavailable):
            return file.flavour, "machine.kernel.module_files"
    return None, "machine.kernel.driver_flavour"


def _logged_flavours(view: SnapshotView, kernel: Kernel) -> dict[str, tuple[str, Evidence]]:
    """{address: (flavour that the driver asks for, its line)} from the kernel log."""
    return {
        known(event.pci_address) or "": (flavour, event_evidence(view, event))
        for event in known(kernel.log) or []
        for words, flavour in _WRONG_FLAVOUR.items()
        if words in event.text and "vGPU" not in event.text
    }


def _wrong(
    view: SnapshotView,
    kernel: Kernel,
    subjects: list[Subject],
    needed: str,
    evidence: list[Evidence],
) -> Finding:
    commands = then_reboot(install_flavour(view, kernel, needed))
    return NEEDS[needed].found(subjects, evidence, commands=commands)
