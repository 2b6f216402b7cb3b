"""Checks on whether each GPU still answers, and on what the driver wants done to it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...facts.base import NOT_COLLECTED, known
from ...facts.evidence import Evidence
from ...facts.gpu import Gpu, LostGpu
from ...facts.missing import Skip
from ...facts.view import SnapshotView, need, show
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ...findings.subjects import about_gpu, gpu_subject
from ..container_start import lost_gpus
from ..driver.error_codes import NVML, ErrorCode
from ..driver_state import NO_GPUS, REBOOT, REPORT, container
from ..gpus import (
    DRAIN_P2P,
    VITAL,
    drain_p2p,
    each_gpu,
    finding,
    gpu_path,
    is_lost,
    judge_gpus,
    reset,
    together,
    troubled,
)
from ..on_the_bus import NVIDIA_DEVICES
from ..registry import check

_KERNEL_LOG = "sudo dmesg | grep -iE 'nvrm|xid|fallen off'"
_PERMISSION = 4
# NVML's errors on opening a GPU that say themselves what has to be done.
_TELLING = (8, 14)  # INSUFFICIENT_POWER, CORRUPTED_INFOROM
_RESET = 16  # RESET_REQUIRED


@check(
    "GPU-001",
    title="No GPU is lost",
    problem="is lost",
    about="A GPU that has fallen off the bus, that hangs, or whose firmware died is still counted and does"
    " not answer any more; whatever runs on it hangs or dies, and often the whole job with it. The signs"
    " are NVML errors that are not 'not supported': GPU is lost, unknown error, reset required. An error"
    " on a fact that every GPU has (UUID, name, memory, temperature) is a failure; one on a side fact"
    " alone is a warning, and so is a GPU that only this user may not open. Of a document that somebody"
    " sent, so is one that counts more GPUs than it describes: one that the driver could not ask is left"
    " out of it, and so are those that nobody asked for (nvidia-smi -i).",
    sources=(
        "NVSentinel#155; gpustack/runtime#26; aws/eks-node-monitoring-agent#245",
        "NVIDIA GPU debug guidelines; XID 79",
    ),
    follows=(*NO_GPUS, "PCI-004", "KRN-006", "GPU-032"),
)
def no_gpu_is_lost(view: SnapshotView) -> Iterator[Verdict]:
    probe = view.machine.nvml
    lost = probe.facts.lost if probe is not None and probe.facts is not None else []
    for place, entry in enumerate(lost):
        yield _lost(view, place, entry)
    if view.gpus or not lost:
        yield from together(each_gpu(view, lambda gpu: _troubled(view, gpu)))
    yield from _left_out(view)


def _left_out(view: SnapshotView) -> Iterator[Finding]:
    """Of nvidia-smi's document: GPUs that are attached and not described in it."""
    smi, nvml = view.machine.nvidia_smi, view.machine.nvml
    if smi is None or smi.facts is None or (nvml is not None and nvml.facts is not None):
        return
    attached, described = known(smi.facts.gpu_count), known(smi.facts.gpus)
    # One alone out of many is what somebody asked for.
    if attached is None or described is None or not 1 < len(described) < attached:
        return
    if _told(described[-1]) < _told(described[0]) / 2:  # the document breaks off in it
        return
    yield Finding(
        "warn",
        f"nvidia-smi counts {attached} GPUs and describes {len(described)}: the driver could not ask the"
        " others, which are lost, unless they were left out on purpose (-i) or the document was cut.",
        evidence=[
            view.evidence("machine.nvidia_smi.gpu_count"),
            view.evidence(
                "machine.nvidia_smi.gpus",
                ", ".join(known(gpu.pci_address) or "?" for gpu in described),
            ),
        ],
        remedy=Remedy(
            "See which one is missing, and look for it in the kernel's log; reset it or reboot.",
            ["nvidia-smi -L", NVIDIA_DEVICES, _KERNEL_LOG, REPORT, REBOOT],
        ),
        headline="nvidia-smi describes fewer GPUs than are attached",
    )


def _told(gpu: Gpu) -> int:
    """How many of its facts are told, or told to be missing."""
    return sum(fact != NOT_COLLECTED for fact in msgspec.structs.astuple(gpu))


def _lost(view: SnapshotView, place: int, entry: LostGpu) -> Finding:
    address = known(entry.pci_address)
    gpu = gpu_subject(Gpu(index=entry.index, pci_address=entry.pci_address))
    told = NVML.get(
        entry.code, ErrorCode(f"NVML error {entry.code}", entry.error, NVML[999].remedy)
    )
    evidence = [
        view.evidence(f"machine.nvml.lost[{place}]", f"{entry.error} ({entry.code}, {told.name})")
    ]
    if entry.code == _PERMISSION:
        remedy = Remedy(told.remedy, list(told.commands))
        message = f"{gpu.text} is closed to this user, whose programs do not find it."
        return Finding("warn", message, [gpu], evidence, remedy)
    if entry.code in _TELLING:
        remedy = Remedy(told.remedy, list(told.commands))
    elif entry.code == _RESET:
        remedy = reset(
            Gpu(index=entry.index, pci_address=entry.pci_address), "The driver asks for a reset."
        )
    else:
        remedy = _bring_back(view, address)
    return Finding(
        "fail",
        f"{gpu.text} does not answer the driver: {told.meaning}; what runs on it hangs or dies.",
        [gpu],
        evidence + _log_evidence(view, address),
        remedy,
    )


def _bring_back(view: SnapshotView, address: str | None) -> Remedy:
    if container(view):
        again = lost_gpus(view)
        return Remedy(
            f"See whether the host still has the GPU; where it does: {again.text}",
            ["# on the host: nvidia-smi -L", *again.commands],
        )
    commands = [_KERNEL_LOG, REPORT]
    if address:
        commands.append(f"sudo nvidia-smi --gpu-reset -i {word(address)}")
    return Remedy(
        "Take the machine out of service, keep the driver's report, which a reset wipes out, then reset"
        " the GPU; reboot where that fails. Where it"
        " happens again, reseat the GPU, and have it replaced (RMA) if that does not help.",
        [*commands, REBOOT],
    )


def _log_evidence(view: SnapshotView, address: str | None) -> list[Evidence]:
    kernel = view.machine.kernel
    events = None if kernel is None or kernel.facts is None else known(kernel.facts.log)
    about = [
        event
        for event in events or []
        if event.kind in ("xid", "fallen-off-bus")
        and address
        and known(event.pci_address) == address
    ]
    return [view.evidence("machine.kernel.log", event.text) for event in about[-2:]]


def _troubled(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    errors = troubled(gpu)
    if not errors:
        yield Passed("every GPU answers")
        return
    fatal = is_lost(gpu)
    names = [name for name, _ in errors if not fatal or name in VITAL] or [errors[0][0]]
    evidence = [
        view.evidence(f"{gpu_path(view, gpu)}.{name}", show(fact))
        for name, fact in errors
        if name in names[:3]
    ]
    if fatal:
        yield Finding(
            "fail",
            "The GPU is still listed and answers with errors alone: it is lost, and what runs on it hangs"
            " or dies.",
            about_gpu(gpu),
            evidence + _log_evidence(view, known(gpu.pci_address)),
            _bring_back(view, known(gpu.pci_address)),
        )
        return
    yield Finding(
        "warn",
        f"The driver gives an error for {', '.join(names[:3])} of a GPU that otherwise answers: it may be"
        " about to fail.",
        about_gpu(gpu),
        evidence,
        Remedy("Look in the kernel's log; reset the GPU if it stays.", [_KERNEL_LOG]),
    )


# The faults that make the driver ask for a recovery.
_ASKED_FOR_BY = ("GPU-002", "GPU-003", "GPU-004", "GPU-005", "GPU-012", "GPU-031")
# What the driver asks for, in NVML's and nvidia-smi's words (lower case), and how to do it.
_ACTIONS = {
    "reset": "The driver asks for a reset of the GPU.",
    "gpu reset": "The driver asks for a reset of the GPU.",
    "bus reset": "The driver asks for a reset of the GPU through its bus (--gpu-reset bus).",
    "drain and reset": "The driver asks that the GPU be drained of work and reset.",
}
_IMEX = Remedy(
    "The driver asks that the IMEX domain be recovered: restart the service on all of its nodes, and see"
    " that each is ready.",
    ["sudo systemctl restart nvidia-imex", "nvidia-imex-ctl -N"],
)
_FINE = ("none", "n/a", "")


@check(
    "GPU-006",
    title="The driver asks for no recovery of a GPU",
    problem="needs a reset",
    about="After an error the driver says itself what a GPU needs: nothing, a reset, a reboot, or to be"
    " drained of work first (recovery action, drivers from 560 on; 'reset required' in older ones)."
    " Anything but nothing is a failure, since the GPU's results and its neighbours' are not to be relied"
    " on until it is done.",
    sources=("nvml.h, nvmlDeviceGpuRecoveryAction_t", "nvidia-smi(1), GPU Recovery Action"),
    follows=(*NO_GPUS, "GPU-001", "KRN-008", *_ASKED_FOR_BY),
)
def no_recovery_needed(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _recovery(view, gpu))


def _recovery(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    action = known(gpu.recovery_action)
    required = known(gpu.reset_required)
    if action is not None and action.strip().lower() not in _FINE:
        words = action.strip().lower()
        if words == DRAIN_P2P:
            remedy = drain_p2p()
        elif words in _ACTIONS:
            remedy = reset(gpu, _ACTIONS[words])
        elif "imex" in words:
            remedy = _IMEX
        else:
            remedy = Remedy(f"The driver asks for: {action}.", [_KERNEL_LOG, REPORT, REBOOT])
        yield finding(
            view,
            "fail",
            gpu,
            f"The driver asks for recovery of this GPU ({action}): until then its results are not to be"
            " relied on.",
            "recovery_action",
            remedy,
        )
    elif required:
        yield finding(
            view,
            "fail",
            gpu,
            "The GPU must be reset before it can be used again.",
            "reset_required",
            reset(gpu, "The driver asks for it."),
        )
    elif known(gpu.drain_and_reset_recommended):
        yield finding(
            view,
            "fail",
            gpu,
            "The driver recommends that the GPU be drained of work and reset: parts of it are out of use"
            " until"
            " then.",
            "drain_and_reset_recommended reset_required",
            reset(gpu, "Let the jobs on it end and start no new ones."),
        )
    elif action is None and required is None:
        need(gpu.recovery_action, "the recovery action")
        raise Skip("the recovery action is not told")
    else:
        yield Passed("no recovery action is asked for")
