"""Checks on the driver: does NVML answer, does nvidia-smi, do module and libraries belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.base import Probe, Unavailable, known
from ...facts.gpu import NvidiaSmi
from ...facts.missing import Skip
from ...facts.view import SnapshotView, facts_of, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import Subject, about_device_at, about_file
from ..container_start import lost_gpus, start_with_gpus
from ..driver_state import (
    HOLDERS,
    NO_DRIVER,
    NO_GPUS,
    REBOOT,
    container,
    device_node,
    driver_libraries,
)
from ..on_the_bus import NVIDIA_DEVICES
from ..registry import check
from .error_codes import NVIDIA_SMI, NVIDIA_SMI_FAULTS, NVML, ErrorCode
from .hang import died, silent, stuck_in
from .mismatch import nvml_code

_UNKNOWN = 999
_LOST = (
    "the device nodes are in this container, and opening them fails, as where it has lost its GPUs"
)
_BY_HAND = Remedy(
    "Run it by hand, and look at the kernel's log.",
    ["nvidia-smi; echo $?", "sudo dmesg | grep -iE 'nvrm|xid'"],
)


@check(
    "DRV-001",
    title="NVML answers",
    problem="NVML does not answer",
    about="NVML is the library through which nvidia-smi, schedulers and monitoring ask the driver."
    " Where it does not start, no tool can list a GPU, and CUDA usually does not start either."
    " Judged by what nvmlInit returns in a process of its own; its error code tells a missing library"
    " from a module that is not loaded, a version mismatch, a lack of permission and a lost GPU.",
    sources=("nvml.h, nvmlReturn_t", "nvidia-container-toolkit#33, #48, #1227"),
    follows=(*NO_DRIVER, "KRN-006", "DRV-010", "DRV-002", "ENV-002", "ENV-009"),
)
def nvml_answers(view: SnapshotView) -> Iterator[Verdict]:
    if stuck_in(view.machine.nvml):
        yield _hangs(view)
        return
    if died(view.machine.nvml) or silent(view.machine.nvml):
        yield _gone(view)
        return
    nvml = facts_of(view.machine.nvml, "NVML")
    code = need(nvml.init_code, "NVML's answer")
    if code == 0:
        count, version = known(nvml.gpu_count), known(nvml.driver_version)
        gpus = "" if count is None else f", {count} GPU{'' if count == 1 else 's'}"
        yield Passed(f"driver {version or 'of a version not told'}{gpus}")
        return
    error = known(nvml.init_error) or "an error without a name"
    told = NVML.get(
        code, ErrorCode(f"NVML error {code}", error, NVML[999].remedy, NVML[999].commands)
    )
    evidence = [view.evidence("machine.nvml.init_code", f"{code} ({told.name})")]
    if known(nvml.init_error):
        evidence.append(view.evidence("machine.nvml.init_error"))
    meaning = _LOST if _lost_in_container(view, code) else told.meaning
    yield Finding(
        "fail",
        f"NVML does not start: {meaning}; no tool can see the GPUs.",
        evidence=evidence,
        remedy=_nvml_remedy(view, code, told),
    )


def _lost_in_container(view: SnapshotView, code: int) -> bool:
    return code == _UNKNOWN and bool(container(view) and device_node(view, "/dev/nvidiactl"))


def _hangs(view: SnapshotView) -> Finding:
    """No GPU can be judged by NVML then: this is what those checks follow from, and DRV-010 is why."""
    return Finding(
        "fail",
        "NVML hangs in the kernel: no tool can see the GPUs.",
        evidence=[view.evidence("machine.nvml")],
        remedy=Remedy("See DRV-010.", [HOLDERS, REBOOT]),
    )


def _gone(view: SnapshotView) -> Finding:
    """The process that asked NVML died in it, or never came back out of it."""
    probe = view.machine.nvml
    assert probe is not None
    what = "crashes" if died(probe) else "never answers"
    return Finding(
        "fail",
        f"A process that asks NVML for the GPUs {what} ({probe.reason}): monitoring and schedulers will not"
        " fare better.",
        evidence=[view.evidence("machine.nvml", probe.evidence or probe.reason)],
        remedy=Remedy(
            "See whether nvidia-smi comes back, and what the kernel's log says of a GPU; where nothing does,"
            " reboot, and if it stays so install the driver again.",
            ["time nvidia-smi -L", "sudo dmesg | grep -iE 'nvrm|xid'", REBOOT],
        ),
        headline=f"NVML {what}",
    )


def _nvml_remedy(view: SnapshotView, code: int, told: ErrorCode) -> Remedy:
    if container(view):
        if _lost_in_container(view, code):
            return lost_gpus(view)
        return start_with_gpus(
            view,
            "Start a new container with the GPUs: one whose library is missing was started without"
            " them, or without the driver capability utility.",
        )
    commands = list(told.commands)
    if code == 12:
        commands += driver_libraries(view)
    return Remedy(told.remedy, commands)


@check(
    "DRV-003",
    title="nvidia-smi answers",
    problem="nvidia-smi does not work",
    about="nvidia-smi is what people and scripts ask first. Where it is missing or broken while NVML"
    " works, training is not affected, yet scripts, health checks and container tools are: a warning."
    " Its exit code tells the reason; output that is no document means that something else bears its"
    " name.",
    sources=("nvidia-smi(1), RETURN VALUE",),
    follows=(*NO_GPUS, "DRV-010", "GPU-001", "KRN-009", "KRN-013"),
)
def nvidia_smi_answers(view: SnapshotView) -> Iterator[Verdict]:
    works = nvml_code(view) == 0
    if works and silent(view.machine.nvidia_smi):
        yield _smi_silent(view, view.machine.nvidia_smi, NvidiaSmi())
        return
    smi = facts_of(view.machine.nvidia_smi, "nvidia-smi")
    if view.machine.origin == "nvidia-smi":
        yield _once_said(view, smi)
        return
    if isinstance(smi.path, Unavailable) and smi.path.unavailable == "absent" and works:
        yield _smi_missing(view)
        return
    path = need(smi.path, "nvidia-smi")
    if (
        isinstance(smi.exit_code, Unavailable)
        and smi.exit_code.unavailable == "timeout"
        and works
        and not stuck_in(view.machine.nvidia_smi)
    ):
        yield _smi_silent(view, view.machine.nvidia_smi, smi)
        return
    code = need(smi.exit_code, "nvidia-smi's answer")
    if code != 0:
        yield _smi_failed(view, smi, code, works)
    elif known(smi.form) is None and known(smi.gpus) is None:
        yield Finding(
            "warn",
            "nvidia-smi reports success and prints something that is not its document: scripts that"
            " rely on it read nonsense.",
            subjects=about_file(path),
            evidence=[
                view.evidence("machine.nvidia_smi.path"),
                view.evidence("machine.nvidia_smi.message"),
            ],
            remedy=Remedy("See whether another program bears its name.", ["type -a nvidia-smi"]),
        )
    else:
        yield Passed(path if known(smi.schema) is None else f"{path}, schema {known(smi.schema)}")


# What nvidia-smi prints for NVML's errors, in the place of its document.
_SAID = {
    "version mismatch": 18,
    "communicate with the nvidia driver": 9,
    "driver not loaded": 9,
    "library not found": 12,
    "insufficient permissions": 4,
    "gpu is lost": 15,
    "reset required": 16,
    "blocked by the operating system": 17,
    "couldn't find libnvidia-ml": 12,
    "unknown error": 999,
}
_HANDLE = re.compile(
    r"device handle for GPU ?\d{0,3}:? ?([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])",
    re.I,
)


def _once_said(view: SnapshotView, smi: NvidiaSmi) -> Verdict:
    """Of a document that somebody sent: it was not run here."""
    said = known(smi.message)
    if said is None or known(smi.form) is not None:
        raise Skip("nvidia-smi was not run: the snapshot was made from what it once printed")
    if isinstance(smi.path, Unavailable) and smi.path.unavailable == "absent":
        return _never_there(view)
    code = next((code for words, code in _SAID.items() if words in said.lower()), None)
    told = None if code is None else NVML[code]
    means = f": {told.meaning}" if told is not None else ""
    return Finding(
        "fail",
        f"nvidia-smi printed an error and no GPUs{means}.",
        subjects=_handle(said),
        evidence=[view.evidence("machine.nvidia_smi.message")],
        remedy=Remedy(told.remedy, list(told.commands)) if told is not None else _BY_HAND,
    )


def _handle(said: str) -> list[Subject]:
    """The GPU that nvidia-smi could not open, by its address."""
    named = _HANDLE.search(said)
    address = None if named is None else f"{int(named[1], 16):04x}:{named[2].lower()}"
    return about_device_at("gpu", address)


def _never_there(view: SnapshotView) -> Finding:
    return Finding(
        "fail",
        "There was no nvidia-smi: the driver is not installed, or a container was started without it.",
        evidence=[view.evidence("machine.nvidia_smi.message")],
        remedy=Remedy(
            "Install the NVIDIA driver; start a container with the GPUs, and with the driver capability"
            " utility; in WSL nvidia-smi is in a directory of its own.",
            [NVIDIA_DEVICES, "cat /proc/driver/nvidia/version", "ls /usr/lib/wsl/lib/nvidia-smi"],
        ),
    )


def _smi_missing(view: SnapshotView) -> Finding:
    return Finding(
        "warn",
        "nvidia-smi is not installed though the driver works: scripts and health checks that call it"
        " will fail.",
        evidence=[
            view.evidence("machine.nvidia_smi.path"),
            view.evidence("machine.nvml.init_code", 0),
        ],
        remedy=Remedy(
            "Install the driver's tools (in a container: start it with the driver capability utility).",
            driver_libraries(view),
        ),
    )


def _smi_silent(view: SnapshotView, probe: Probe[NvidiaSmi] | None, smi: NvidiaSmi) -> Finding:
    """By nvidia-smi's own deadline, or by that of the process which waited for it."""
    assert probe is not None
    late = known(smi.message) or f"nvidia-smi gave no answer within {probe.seconds:.0f} s"
    return Finding(
        "warn",
        f"{late}, though NVML answers: scripts and health checks that call it hang.",
        subjects=about_file(known(smi.path)),
        evidence=[
            view.evidence("machine.nvidia_smi.message")
            if known(smi.message)
            else view.evidence("machine.nvidia_smi", probe.reason)
        ],
        remedy=Remedy(
            "See where it hangs, and whether another program bears its name.",
            ["type -a nvidia-smi", "timeout 60 strace -f nvidia-smi -L", *_BY_HAND.commands[1:]],
        ),
    )


def _smi_failed(view: SnapshotView, smi: NvidiaSmi, code: int, works: bool) -> Finding:
    if code < 0:
        what = f"died by signal {-code}"
    else:
        what = f"exits with {code} ({NVIDIA_SMI.get(code, 'a code without a documented meaning')})"
    evidence = [view.evidence("machine.nvidia_smi.exit_code")]
    if known(smi.message):
        evidence.append(view.evidence("machine.nvidia_smi.message"))
    harmless = works and code not in NVIDIA_SMI_FAULTS
    return Finding(
        "warn" if harmless else "fail",
        f"nvidia-smi {what}"
        + (", though NVML answers: scripts that call it will fail." if harmless else "."),
        subjects=about_file(known(smi.path)),
        evidence=evidence,
        remedy=_BY_HAND,
    )
